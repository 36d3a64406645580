"""The records that `collabllm mr` leaves, and what a second start finds of them.

Promises: a reply is in the file as soon as it is scored; after any kind of end the same command
goes on; a file made with other settings, or for other replies, is refused and left as it is.
Knows nothing of how replies are scored.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recipe.collabllm.given_reply import GivenReply
from recipe.collabllm.json_lines import FileFault, JsonLine
from recipe.collabllm.record import Outcome, ReplyRecord
from recipe.collabllm.run_folder import write_text
from recipe.collabllm.stored_conversation import read_record

Key = tuple[str, int]


class MrFile:
    """JSON lines of reply records (docs/run_folder.md); made by `opened_file`.

    Attributes:
        records: What is in it, by group and number in the group; replies that were left out
            are not: they are tried again.
    """

    def __init__(self, path: Path, replies: Iterable[GivenReply]) -> None:
        self._path = path
        self._texts = {(reply.uid, reply.session): reply.turn.text for reply in replies}
        self.records: dict[Key, ReplyRecord] = {}
        if path.exists():
            self.records = {(r.uid, r.session): r for r in self._read()}

    def add(self, record: ReplyRecord) -> None:
        """Add a reply's record."""
        if not self.records:
            self.put_in_order()
        self.records[record.uid, record.session] = record
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(record.to_json() + "\n")

    def put_in_order(self) -> None:
        """Write what is known in the order of the replies, without torn or doubled lines."""
        known = [self.records[key] for key in self._texts if key in self.records]
        write_text(self._path, "".join(f"{record.to_json()}\n" for record in known))

    def _read(self) -> Iterator[ReplyRecord]:
        """Yield the records that have a number; a torn last line was killed while written."""
        lines = self._path.read_bytes().split(b"\n")
        for number, raw in enumerate(lines[:-1], start=1):
            try:
                value = json.loads(raw)
            except ValueError as error:
                raise FileFault(f"{self._path}: line {number}: not JSON: {error}") from error
            record = read_record(JsonLine(self._path, number, value))
            if self._texts.get((record.uid, record.session)) != record.reply:
                raise FileFault(
                    f"{self._path}: line {number}: is of a reply that is not asked for: name "
                    "another --output"
                )
            if record.outcome is not Outcome.LEFT_OUT:  # else it is tried again
                yield record


@contextmanager
def opened_file(
    path: Path, settings: Mapping[str, Any], replies: Iterable[GivenReply]
) -> Iterator[MrFile]:
    """Hold a file for this process; what was begun without a single record is taken away.

    Args:
        path: Of the file; the settings lie in `path` + ".settings.json".
        settings: All that the numbers depend on, as JSON values.
        replies: All that are to be in it.

    Raises:
        FileFault: If another process holds it, or it is of other settings or replies.
    """
    beside = path.with_name(f"{path.name}.settings.json")
    wanted = json.dumps(settings, indent=2) + "\n"
    with beside.open("a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise FileFault(f"{path}: another process is writing it") from error
        lock.seek(0)
        known = lock.read()
        try:
            if path.exists():
                _check_settings(path, known, wanted)
            file = MrFile(path, replies)
            if known != wanted:
                lock.truncate(0)
                lock.write(wanted)
                lock.flush()
            if file.records:
                file.put_in_order()
            yield file
            if file.records:
                file.put_in_order()
        finally:
            if not path.exists() or not beside.stat().st_size:
                beside.unlink()


def _check_settings(path: Path, known: str, wanted: str) -> None:
    try:
        found = dict(json.loads(known))
    except (TypeError, ValueError) as error:
        raise FileFault(
            f"{path}: is there already, and nothing tells how it was made: name another --output"
        ) from error
    asked = json.loads(wanted)
    other = sorted(key for key in {*found, *asked} if found.get(key) != asked.get(key))
    if other:
        key = other[0]
        raise FileFault(
            f"{path}: was made with another {', '.join(other)} ({key}: {found.get(key)!r}, not "
            f"{asked.get(key)!r}): name another --output, or ask for the same"
        )
