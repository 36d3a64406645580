"""A file of conversations that a chat leaves, in the format of a run's own.

Promises: the file is there whole or not at all, also after every conversation; what was there
before the chat is never overwritten. Knows nothing of how conversations come about.
"""

from __future__ import annotations

from pathlib import Path

from recipe.collabllm.record import ReplyRecord
from recipe.collabllm.run_folder import write_text


class ConversationFile:
    """JSON lines of reply records (docs/run_folder.md).

    Args:
        path: Must not exist yet.

    Raises:
        ValueError: If it does, or its folder is not there.
    """

    def __init__(self, path: Path) -> None:
        if path.exists():
            raise ValueError(f"{path}: is there already and is not overwritten; name another file")
        if not path.parent.is_dir():
            raise ValueError(f"{path}: there is no folder {path.parent}; make it first")
        self.path = path
        self._lines: list[str] = []

    def add(self, record: ReplyRecord) -> None:
        """Add one conversation."""
        self._lines.append(record.to_json() + "\n")
        write_text(self.path, "".join(self._lines))
