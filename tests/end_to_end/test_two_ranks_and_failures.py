"""Two training processes, an interaction of verl 0.7 that fails now and then, and at last always."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

from tests.end_to_end.conftest import TrainingFolder, wait_for


def interaction_file(training: TrainingFolder) -> str:
    """Write a user of one's own and the file that names it, where the command is run."""
    shutil.copy(Path(__file__).with_name("users.py"), training.path / "my_users.py")
    file = training.path / "interaction.yaml"
    file.write_text(
        "interaction:\n  - name: old\n    class_name: my_users.OldInteraction\n"
        f"    config: {{fails: 0.4, down: {training.path / 'down'}}}\n"
    )
    return f"collabllm.interaction_config_path={file}"


def test_two_ranks_train_on_what_an_old_interaction_leaves_and_stop_when_it_goes_down(
    training: TrainingFolder,
) -> None:
    run = training.start(
        "trainer.n_gpus_per_node=2",
        "trainer.total_training_steps=9",
        "trainer.val_before_train=false",
        interaction_file(training),
        "collabllm.user=old",
        "collabllm.max_failure_rate=0.95",
        "collabllm.user_attempts=1",
        # Trained in several passes, the remedy for too little memory.
        "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=640",
        "collabllm.max_reply_tokens=56",
        "data.train_batch_size=4",
    )
    wait_for(training.run / "conversations" / "train" / "step_000002.jsonl", 600)
    (training.path / "down").touch()
    assert run.wait(300) == 1
    told = training.told()
    assert "futures failed" in told and "the endpoint is down" in told
    assert "collabllm.max_failure_rate" in told

    metrics = training.metrics()
    assert metrics[2]["training/global_step"] == 2 and len(metrics) < 9
    for step in (1, 2):
        assert math.isfinite(metrics[step]["critic/score/mean"])
        assert math.isfinite(metrics[step]["actor/grad_norm"])
        assert abs(metrics[step]["actor/ppo_kl"]) < 0.02
    check_left_out(training, metrics)


def check_left_out(training: TrainingFolder, metrics: dict[int, dict[str, float]]) -> None:
    """Replies whose only future failed are in the log, with the reason, and not in the batch."""
    replies = [r for step in (1, 2) for r in training.conversations("train", step)]
    futures = [future for reply in replies for future in reply["futures"]]
    said = {m["content"] for f in futures for m in f["messages"] if m["role"] == "user"}
    assert said == {"Please go on."}
    left_out = [r for r in replies if r["outcome"] == "left_out"]
    assert left_out and any(r["outcome"] == "scored" for r in replies)
    assert all(r["mr"] is None for r in left_out)
    assert all("the endpoint is down" in f["failure"] for r in left_out for f in r["futures"])
    assert sum(metrics[step]["reward/left_out_replies"] for step in (1, 2)) >= len(left_out)
    assert sum(metrics[step]["reward/resampled_futures"] for step in (1, 2)) >= len(left_out)
