"""Two training processes, an interaction of verl 0.7, and users that fail now and then or always."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

from tests.end_to_end.conftest import TrainingFolder


def interaction_file(folder: Path, name: str, class_name: str, config: str = "{}") -> str:
    """Write users of one's own and the file that names one, where the command is run."""
    shutil.copy(Path(__file__).with_name("users.py"), folder / "my_users.py")
    file = folder / "interaction.yaml"
    file.write_text(
        f"interaction:\n  - name: {name}\n    class_name: my_users.{class_name}\n"
        f"    config: {config}\n"
    )
    return f"collabllm.interaction_config_path={file}"


def test_two_ranks_train_with_an_old_interaction_and_leave_out_what_it_fails_on(
    training: TrainingFolder,
) -> None:
    done = training.train(
        "trainer.n_gpus_per_node=2",
        "trainer.total_training_steps=2",
        interaction_file(training.path, "old", "OldInteraction", "{fails: 0.4}"),
        "collabllm.user=old",
        "collabllm.max_failure_rate=1.0",
        "collabllm.user_attempts=1",
        # Trained in several passes, the remedy for too little memory.
        "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=640",
        "collabllm.max_reply_tokens=56",
        "data.train_batch_size=4",
    )
    assert done.returncode == 0
    metrics = training.metrics()
    assert metrics[2]["training/global_step"] == 2
    for step in (1, 2):
        assert math.isfinite(metrics[step]["critic/score/mean"])
        assert math.isfinite(metrics[step]["actor/grad_norm"])
        assert abs(metrics[step]["actor/ppo_kl"]) < 0.02

    replies = [r for step in (1, 2) for r in training.conversations("train", step)]
    futures = [future for reply in replies for future in reply["futures"]]
    said = {m["content"] for f in futures for m in f["messages"] if m["role"] == "user"}
    assert said == {"Please go on."}
    left_out = [r for r in replies if r["outcome"] == "left_out"]
    assert left_out and any(r["outcome"] == "scored" for r in replies)
    assert all(r["mr"] is None for r in left_out)
    assert all("the endpoint is down" in f["failure"] for r in left_out for f in r["futures"])
    assert sum(metrics[step]["reward/left_out_replies"] for step in (1, 2)) >= len(left_out)


def test_too_many_failures_stop_the_run_with_the_reason(training: TrainingFolder) -> None:
    done = training.train(
        "trainer.total_training_steps=2",
        "trainer.val_before_train=false",
        interaction_file(training.path, "flaky", "FlakyUser", "{fails: 1.0}"),
        "collabllm.user=flaky",
        "collabllm.max_reply_tokens=56",
    )
    assert done.returncode == 1
    assert "futures failed" in done.stderr and "the endpoint is down" in done.stderr
    assert "collabllm.max_failure_rate" in done.stderr
