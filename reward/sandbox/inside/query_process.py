"""The process of an SQL query: runs one on a database that it cannot change.

Promises: SQLite only, reading only, no other file; a query that fails or runs too long gives its
reason. Knows nothing of right and wrong.
"""

from __future__ import annotations

import sqlite3
import time
from urllib.parse import quote

from .wire import to_wire

_READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
_STEPS_BETWEEN_LOOKS = 10_000
_MOST_BYTES = 1_000_000


class Unusable(Exception):
    """The database itself cannot be opened or made."""


def run_query(job: dict[str, object]) -> dict[str, object]:
    """Return `{"rows": ...}`, `{"failed": reason}` or `{"unusable": reason}`.

    Args:
        job: `script` or `file` (the database), `query`, `seconds`, `rows` (limits).
    """
    try:
        connection = _open(job)
    except sqlite3.Error as error:
        return {"unusable": str(error)[:300]}
    deadline = time.monotonic() + float(str(job["seconds"]))
    connection.set_authorizer(_authorize)
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_LOOKS)
    limit = int(str(job["rows"]))
    try:
        rows = connection.execute(str(job["query"])).fetchmany(limit + 1)
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
        return {"failed": f"{type(error).__name__}: {error}"[:300]}
    if len(rows) > limit:
        return {"failed": f"more than {limit} rows"}
    size = sum(len(cell) for row in rows for cell in row if isinstance(cell, (str, bytes)))
    if size > _MOST_BYTES:
        return {"failed": f"more than {_MOST_BYTES} bytes of text"}
    return {"rows": [to_wire(list(row)) for row in rows]}


def _open(job: dict[str, object]) -> sqlite3.Connection:
    if job["file"]:
        path = quote(str(job["file"]))
        connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    else:
        connection = sqlite3.connect(":memory:")
        connection.executescript(str(job["script"]))
        connection.commit()
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA query_only = ON")
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    return connection


def _authorize(action: int, *names: str | None) -> int:
    loading = action == sqlite3.SQLITE_FUNCTION and "load_extension" in names
    return sqlite3.SQLITE_OK if action in _READING and not loading else sqlite3.SQLITE_DENY
