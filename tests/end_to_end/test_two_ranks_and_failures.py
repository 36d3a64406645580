"""Two training processes, an interaction file of verl 0.7, and users that fail."""

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


def test_two_ranks_train_with_an_interaction_of_verl_0_7(training: TrainingFolder) -> None:
    done = training.train(
        "trainer.n_gpus_per_node=2",
        "trainer.total_training_steps=2",
        interaction_file(training.path, "old", "OldInteraction"),
        "collabllm.user=old",
    )
    assert done.returncode == 0
    metrics = training.metrics()
    assert metrics[2]["training/global_step"] == 2
    assert math.isfinite(metrics[2]["actor/grad_norm"])
    assert abs(metrics[2]["actor/ppo_kl"]) < 0.02
    said = {
        message["content"]
        for reply in training.conversations("train", 2)
        for future in reply["futures"]
        for message in future["messages"]
        if message["role"] == "user"
    }
    assert said <= {"Please go on."}


def test_replies_without_a_valid_future_are_left_out_and_training_goes_on(
    training: TrainingFolder,
) -> None:
    done = training.train(
        "trainer.total_training_steps=2",
        interaction_file(training.path, "flaky", "FlakyUser", "{fails: 0.4}"),
        "collabllm.user=flaky",
        "collabllm.max_failure_rate=1.0",
        "collabllm.user_attempts=1",
        # Trained in several passes, the remedy for too little memory.
        "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=640",
        "collabllm.max_reply_tokens=56",
        "data.train_batch_size=4",
    )
    assert done.returncode == 0
    replies = [r for step in (1, 2) for r in training.conversations("train", step)]
    left_out = [r for r in replies if r["outcome"] == "left_out"]
    assert left_out and any(r["outcome"] == "scored" for r in replies)
    assert left_out and all(r["mr"] is None for r in left_out)
    assert all("the endpoint is down" in f["failure"] for r in left_out for f in r["futures"])
    metrics = training.metrics()
    assert all(math.isfinite(metrics[step]["critic/score/mean"]) for step in (1, 2))
    assert sum(metrics[step]["reward/left_out_replies"] for step in (1, 2)) >= len(left_out)


def test_too_many_failures_stop_the_run_with_the_reason(training: TrainingFolder) -> None:
    done = training.train(
        "trainer.total_training_steps=2",
        interaction_file(training.path, "flaky", "FlakyUser", "{fails: 1.0}"),
        "collabllm.user=flaky",
        "collabllm.max_reply_tokens=56",
    )
    assert done.returncode == 1
    assert "futures failed" in done.stderr and "the endpoint is down" in done.stderr
    assert "collabllm.max_failure_rate" in done.stderr
