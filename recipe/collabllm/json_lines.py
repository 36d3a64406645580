"""A file of JSON objects, one a line, that somebody else wrote.

Promises: a fault names file, line, key and remedy; what was read can be written again as UTF-8.
Knows nothing of what the objects mean.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interaction.conversation import Conversation

_TURN = '{"role": "system" | "user" | "assistant", "content": TEXT}'


class FileFault(ValueError):
    """A file cannot be used; the message names it, the line, the key and the remedy."""


@dataclass(frozen=True)
class JsonLine:
    """One object.

    Attributes:
        path: Its file.
        number: Its line, from 1.
        value: The object.
    """

    path: Path
    number: int
    value: dict[str, Any]

    def fault(self, key: str, reason: str) -> FileFault:
        """Return the fault of a key, to be raised."""
        return FileFault(f"{self.path}: line {self.number}: key {key!r}: {reason}")

    def conversation(self, key: str) -> Conversation:
        """Return the messages under a key.

        Raises:
            FileFault: If they are none.
        """
        said = self.value.get(key)
        if not isinstance(said, list):
            raise self.fault(key, f"must be a list of messages {_TURN}")
        for position, message in enumerate(said):
            try:
                Conversation.from_dicts([message])
            except KeyError as error:
                reason = f"message {position} has no {error}; give messages as {_TURN}"
                raise self.fault(key, reason) from error
            except (AttributeError, TypeError, ValueError) as error:
                reason = f"message {position}: {error}; give messages as {_TURN}"
                raise self.fault(key, reason) from error
        return Conversation.from_dicts(said)


def read_json_lines(path: Path) -> list[JsonLine]:
    """Return a file's objects; empty lines are passed over.

    Raises:
        FileFault: If it cannot be read, a line is no JSON object, or there is none.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileFault(f"{path}: cannot be read: {error.strerror or error}") from error
    # Not splitlines: a line of JSON may hold other characters that end lines.
    numbered = enumerate(content.split(b"\n"), start=1)
    lines = [
        JsonLine(path, number, _object(path, number, raw))
        for number, raw in numbered
        if raw.strip()
    ]
    if not lines:
        raise FileFault(f"{path}: is empty; it must have one JSON object a line")
    return lines


def _object(path: Path, number: int, raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=_no_number)
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # half a surrogate pair cannot be
    except (ValueError, RecursionError) as error:
        raise FileFault(f"{path}: line {number}: not a line of JSON in UTF-8: {error}") from error
    if not isinstance(value, dict):
        raise FileFault(f"{path}: line {number}: must be a JSON object, is {type(value).__name__}")
    return value


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")
