"""Runs of the real thing: verl's trainer, SmolLM2, the embedded engine, in a folder of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# Small enough for a few seconds a step, real in every part.
SMALL = [
    "backend=cpu",
    "data.train_batch_size=2",
    "data.train_rows=40",
    "data.validation_rows=4",
    "actor_rollout_ref.rollout.n=4",
    "collabllm.max_reply_tokens=24",
    "collabllm.max_future_tokens=16",
    "collabllm.run=run",
]


@dataclass(frozen=True)
class TrainingFolder:
    """A folder to train in."""

    path: Path
    model: Path

    @property
    def run(self) -> Path:
        return self.path / "outputs" / "run"

    def command(self, *words: str) -> list[str]:
        model = f"actor_rollout_ref.model.path={self.model}"
        return [sys.executable, "-m", "recipe.collabllm.cli", "train", *SMALL, model, *words]

    def train(self, *words: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.command(*words), cwd=self.path, capture_output=True, text=True, timeout=900
        )
        log = self.run / "logs" / "train.log"
        if done.returncode and log.exists():
            print(log.read_text(errors="replace")[-6000:])
        print(done.stdout, done.stderr)
        return done

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        with (self.path / "told.txt").open("w") as told:
            return subprocess.Popen(
                self.command(*words), cwd=self.path, stdout=told, stderr=told,
                start_new_session=True, env={**os.environ},
            )  # fmt: skip

    def told(self) -> str:
        """Return what a started run has said so far."""
        return (self.path / "told.txt").read_text()

    def conversations(self, split: str, step: int) -> list[dict[str, Any]]:
        file = self.run / "conversations" / split / f"step_{step:06d}.jsonl"
        return [json.loads(line) for line in file.read_text().split("\n") if line]

    def metrics(self) -> dict[int, dict[str, float]]:
        """Return verl's metrics by step, over all starts of the run."""
        found: dict[int, dict[str, float]] = {}
        for file in sorted((self.run / "logs").glob("metrics_from_step_*.jsonl")):
            for line in file.read_text().splitlines():
                entry = json.loads(line)
                found.setdefault(entry["step"], {}).update(entry["data"])
        return found


def wait_for(path: Path, seconds: float) -> None:
    """Wait until there is a file."""
    until = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < until, f"{path} did not appear"
        time.sleep(0.2)


@pytest.fixture
def training(tmp_path: Path, smollm2: Path) -> TrainingFolder:
    return TrainingFolder(tmp_path, smollm2)
