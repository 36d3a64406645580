"""The real trainer from nothing to a model: what it leaves, and that it survives being killed."""

from __future__ import annotations

import json
import os
import signal

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.conftest import SHARED_DATA
from tests.end_to_end.conftest import TrainingFolder, wait_for

GSM8K = SHARED_DATA / "gsm8k_test.jsonl"


def check_exported(training: TrainingFolder) -> None:
    """The exported model is a chat model that loads, and is not the one that training began with."""
    exported, base = (
        dict(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).named_parameters())
        for folder in (training.run / "model", training.model)
    )
    assert exported.keys() == base.keys()
    assert all(weight.isfinite().all() for weight in exported.values())
    assert any(not torch.equal(weight, base[name]) for name, weight in exported.items())
    tokenizer = AutoTokenizer.from_pretrained(training.run / "model")
    assert tokenizer.chat_template and tokenizer.eos_token == "<|im_end|>"


def test_a_run_killed_in_mid_step_resumes_and_leaves_everything(training: TrainingFolder) -> None:
    words = ("trainer.total_training_steps=3", "trainer.save_freq=1")
    killed = training.start(*words)
    wait_for(training.run / "conversations" / "train" / "step_000002.jsonl", 600)
    busy = training.train(*words)
    assert busy.returncode == 2 and "a run is going on in this folder" in busy.stderr
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()

    done = training.train(*words)
    assert done.returncode == 0
    assert "resuming from step" in done.stdout and "after [95%]" in done.stdout
    metrics = training.metrics()
    # verl saves a step before it logs it: the step that was killed in between has no metrics.
    assert {1, 3} <= set(metrics) <= {0, 1, 2, 3}
    logged = sorted((training.run / "conversations" / "train").iterdir())
    assert [file.name for file in logged] == [f"step_00000{step}.jsonl" for step in (1, 2, 3)]
    assert (training.run / "checkpoints" / "latest_checkpointed_iteration.txt").read_text() == "3"
    assert not list(training.run.rglob("*.partial"))

    for step in (1, 3):
        assert metrics[step]["training/global_step"] == step
        for name in (
            "mr/mean",
            "mr/std",
            "valid_futures",
            "failure_rate",
            "reply_tokens",
            "ask_rate",
        ):
            assert f"reward/{name}" in metrics[step], name
        # The engine's log-probabilities against the actor's for the same tokens.
        assert abs(metrics[step]["actor/ppo_kl"]) < 0.02
    scored = [r for s in (1, 2, 3) for r in training.conversations("train", s) if r["futures"]]
    assert scored and all(
        r["per_metric"].keys() >= {"goal_elicited", "interactivity_rule"} for r in scored
    )

    replies = training.conversations("train", 3)
    assert len(replies) == 2 * 4
    for reply in replies:
        assert reply["outcome"] in ("scored", "floor")
        assert (reply["fault"] is None) == (reply["outcome"] == "scored") == bool(reply["futures"])
        if reply["futures"]:
            assert reply["mr"] == pytest.approx(sum(f["reward"] for f in reply["futures"]))
    for uid in {reply["uid"] for reply in replies}:
        users = [
            [f["user_seed"] for f in r["futures"]]
            for r in replies
            if r["uid"] == uid and r["futures"]
        ]
        assert all(seeds == users[0] for seeds in users)

    before, after = (training.conversations("validation", step) for step in (0, 3))
    assert [r["task_id"] for r in before] == [r["task_id"] for r in after]
    assert (training.run / "config.yaml").exists()
    assert list((training.run / "logs" / "tensorboard").glob("events*"))
    report = json.loads((training.run / "before_after.json").read_text())
    assert report["before_step"] == 0 and report["after_step"] == 3
    assert {row["measure"] for row in report["rows"]} >= {"MR", "asks"}
    check_exported(training)

    again = training.train(*words)
    assert again.returncode == 0 and "this run is complete" in again.stdout


@pytest.mark.skipif(not GSM8K.exists(), reason=f"{GSM8K} is not here")
def test_real_mathematics_trains(training: TrainingFolder) -> None:
    done = training.train(
        "task=math", f"data.source={GSM8K}", "trainer.total_training_steps=2",
        "collabllm.max_reply_tokens=64",
        "collabllm.K=auto", "collabllm.auto_K={mean: 2, first: 1, most: 3, timeout_s: 300}",
    )  # fmt: skip
    assert done.returncode == 0
    assert {1, 2} <= set(training.metrics())
    replies = training.conversations("train", 2)
    scored = [r for r in replies if r["outcome"] == "scored"]
    assert all(2 <= len(r["futures"]) <= 3 and "accuracy" in r["per_metric"] for r in scored)
    for uid in {r["uid"] for r in replies}:  # a group's 4 replies share 8 futures
        played = [len(r["futures"]) for r in replies if r["uid"] == uid and not r["fault"]]
        assert sum(played) == min(8, 3 * len(played))
