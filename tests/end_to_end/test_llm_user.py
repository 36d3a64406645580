"""A user played by a language model, all on this machine: llama.cpp serves it, verl trains with it."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.end_to_end.conftest import TrainingFolder


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[str]:
    """The URL of `collabllm serve`, which ends cleanly when the test does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "recipe.collabllm.cli", "serve", "--port", str(port)]
    command += ["--outputs", str(PROJECT / "outputs"), "--parallel", "2", "--context", "2048"]
    with (tmp_path / "serve.log").open("w+") as log:
        server = subprocess.Popen(command, cwd=PROJECT, stdout=log, stderr=subprocess.STDOUT)
        until = time.monotonic() + 240
        while "answers at" not in (told := (tmp_path / "serve.log").read_text()):
            assert server.poll() is None and time.monotonic() < until, told
            time.sleep(0.3)
        yield f"http://127.0.0.1:{port}/v1"
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0
        assert "stopped" in (tmp_path / "serve.log").read_text()


def test_a_run_with_a_served_user_trains(training: TrainingFolder, endpoint: str) -> None:
    done = training.train(
        "interaction=llm",
        f"collabllm.user_endpoint.base_url={endpoint}",
        "collabllm.interaction.0.config.max_tokens=160",
        # So small a model drifts out of its role in many turns; each is a failure with a name.
        "collabllm.max_failure_rate=1.0",
        "trainer.total_training_steps=2",
        "actor_rollout_ref.rollout.n=3",
        "trainer.val_before_train=false",
        "trainer.test_freq=-1",
        "collabllm.max_reply_tokens=56",
    )
    assert done.returncode == 0
    metrics = training.metrics()
    assert metrics[2]["training/global_step"] == 2
    assert metrics[1]["reward/user/calls"] >= 1 and metrics[1]["reward/user/completion_tokens"] > 1
    replies = [r for step in (1, 2) for r in training.conversations("train", step)]
    futures = [future for reply in replies for future in reply["futures"]]
    valid = [future for future in futures if future["failure"] is None]
    assert valid and all(future["usage"]["calls"] >= 1 for future in valid)
    said = [m["content"] for f in valid for m in f["messages"] if m["role"] == "user"]
    assert said and all(text.strip() and '"thought"' not in text for text in said)
    assert all(future["failure"].startswith("user: ") for future in futures if future["failure"])
