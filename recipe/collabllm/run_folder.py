"""The folder that one run leaves, and what a second start of the same run finds in it.

Promises: one process at a time; what a killed run left half written is taken away before the
next begins; the latest whole checkpoint is the one that is resumed. See docs/run_folder.md.
Knows nothing of what is trained.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_STEP = re.compile(r"global_step_(\d+)$")
_TRACKER = "latest_checkpointed_iteration.txt"


class RunBusy(RuntimeError):
    """Another process is running in this folder."""


@dataclass(frozen=True)
class RunFolder:
    """Where a run's things are.

    Attributes:
        path: The run's own folder.
    """

    path: Path

    @property
    def checkpoints(self) -> Path:
        """Verl's checkpoints."""
        return self.path / "checkpoints"

    @property
    def model(self) -> Path:
        """The exported Hugging Face model."""
        return self.path / "model"

    @property
    def config(self) -> Path:
        """The resolved configuration."""
        return self.path / "config.yaml"

    @property
    def report(self) -> Path:
        """The comparison before and after training."""
        return self.path / "before_after.json"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for this process.

        Raises:
            RunBusy: If another process holds it.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / ".lock").open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise RunBusy(
                    f"{self.path}: a run is going on in this folder; wait for it, or choose "
                    "another with collabllm.run=NAME"
                ) from error
            yield

    def resumable_step(self) -> int:
        """Return the step of the latest whole checkpoint, 0 if there is none."""
        tracked = _read_step(self.checkpoints / _TRACKER)
        whole = [step for step, folder in self._saved() if (folder / "data.pt").is_file()]
        if tracked is not None and tracked in whole:
            return tracked
        return max(whole, default=0)

    def tidy(self) -> int:
        """Take away what a killed run left half written; return the step to resume from.

        verl writes a checkpoint's folder, then `data.pt` in it, then the tracker file. A folder
        later than the tracker's is unfinished, an empty tracker was killed while it was written.
        """
        for partial in self.path.rglob(".*.partial"):
            shutil.rmtree(partial) if partial.is_dir() else partial.unlink()
        step = self.resumable_step()
        for saved, folder in self._saved():
            if saved != step:
                shutil.rmtree(folder)
        if step:
            write_text(self.checkpoints / _TRACKER, str(step))
        else:
            (self.checkpoints / _TRACKER).unlink(missing_ok=True)
        return step

    def export_model(self, step: int) -> Path | None:
        """Put a checkpoint's Hugging Face model where people look for it.

        Returns:
            The folder, or None if the checkpoint holds no such model.
        """
        source = self.checkpoints / f"global_step_{step}" / "actor" / "huggingface"
        if not any(source.glob("*.safetensors")):
            return None
        partial = self.model.with_name(".model.partial")
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(source, partial, copy_function=_link_or_copy)
        shutil.rmtree(self.model, ignore_errors=True)
        partial.replace(self.model)
        return self.model

    def _saved(self) -> list[tuple[int, Path]]:
        if not self.checkpoints.is_dir():
            return []
        found = ((_STEP.match(folder.name), folder) for folder in self.checkpoints.iterdir())
        return sorted((int(match[1]), folder) for match, folder in found if match)


def write_json(path: Path, content: Any) -> None:
    """Write JSON, whole or not at all."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def write_text(path: Path, content: str) -> None:
    """Write a text file, whole or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(content, encoding="utf-8")
    partial.replace(path)


def _read_step(tracker: Path) -> int | None:
    try:
        return int(tracker.read_text())
    except (OSError, ValueError):
        return None


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
