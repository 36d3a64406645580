"""Every conversation of every step, as JSON lines in the run's folder.

Promises: a step's file is there whole or not at all; a step that is run again after a crash
replaces its file. Knows nothing of training.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from recipe.collabllm.record import ReplyRecord


def step_file(run_dir: str | Path, split: str, step: int) -> Path:
    """Return where the conversations of a step lie."""
    return Path(run_dir) / "conversations" / split / f"step_{step:06d}.jsonl"


def write_step(run_dir: str | Path, split: str, step: int, records: Iterable[ReplyRecord]) -> Path:
    """Write a step's records, one a line, and return the file."""
    path = step_file(run_dir, split, step)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with partial.open("w", encoding="utf-8") as lines:
        for record in records:
            lines.write(record.to_json() + "\n")
        lines.flush()
        os.fsync(lines.fileno())
    partial.replace(path)
    return path


def read_step(run_dir: str | Path, split: str, step: int) -> list[ReplyRecord]:
    """Return a step's records.

    Raises:
        FileNotFoundError: If the step was not written.
    """
    text = step_file(run_dir, split, step).read_text(encoding="utf-8")
    return [ReplyRecord.from_json(line) for line in text.split("\n") if line]


def logged_steps(run_dir: str | Path, split: str) -> list[int]:
    """Return the steps that were written, in order."""
    folder = step_file(run_dir, split, 0).parent
    return sorted(int(path.stem.removeprefix("step_")) for path in folder.glob("step_*.jsonl"))
