"""`sql_execution`: does the delivered query give the same rows as the reference?

Execution accuracy on SQLite: both queries run on the task's database, reading only, each in a
sandboxed process of its own. Rows are compared as multisets, in order only if the reference has
an ORDER BY of its own; the order of columns counts, names do not; numbers within 1e-6 of each
other are equal. In {0, 1}; 0 without a query and for one that fails, is too slow or gives too many
rows. A reference that fails is `MetricFailed`: it says nothing about the policy.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from interaction.conversation import Conversation
from interaction.task import Task
from reward.extraction import final_code, policy_texts
from reward.metric import MetricContext, MetricFailed, TaskUnfit
from reward.registry import register
from reward.sandbox import Limits, Sandbox, SandboxFailed, SandboxUnavailable, TestsBroken
from reward.sandbox.report import Cell, QueryResult

Row = Sequence[Cell]

_FILES = (".sqlite", ".sqlite3", ".db")
_CLOSE = 1e-6
_QUOTED = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?(?:\*/|\Z)""", re.S
)
_WORDS = re.compile(r"[()]|\w+")


@register("sql_execution")
@dataclass(frozen=True)
class SqlExecution:
    """1 if the rows are equal, else 0.

    Attributes:
        databases: The folder of database files that tasks name; None: tasks bring scripts.
        wall_s: Time of a query in seconds.
        cpu_s: CPU time of a query in whole seconds.
        memory_mb: Address space of a query in MiB.
        rows: Rows a query may return.
        at_once: Queries at the same time; None: as many as there are cores.
        allow_weak: Run queries even without the needed protection.
    """

    databases: str | None = None
    wall_s: float = 10.0
    cpu_s: int = 5
    memory_mb: int = 512
    rows: int = 10_000
    at_once: int | None = None
    allow_weak: bool = False
    _sandbox: Sandbox = field(init=False, repr=False, compare=False)

    range = (0.0, 1.0)

    def __post_init__(self) -> None:
        limits = Limits(self.cpu_s, self.wall_s, self.memory_mb, rows=self.rows)
        sandbox = Sandbox(limits, at_once=self.at_once, allow_weak=self.allow_weak)
        object.__setattr__(self, "_sandbox", sandbox)

    def check(self, task: Task) -> None:
        """Look at the database and the reference.

        Raises:
            TaskUnfit: If one is missing or cannot be used.
        """
        self._database(task)
        if not task.ground_truth.strip():
            raise TaskUnfit("ground_truth must be the reference query: the builder has to set it")

    async def score(self, task: Task, conversation: Conversation, context: MetricContext) -> float:
        """Compare the rows of the delivered query with those of the reference.

        Raises:
            MetricFailed: If the reference or the database cannot be used.
        """
        try:
            self.check(task)
        except TaskUnfit as error:
            raise MetricFailed(str(error)) from error
        query = final_code(policy_texts(conversation, context))
        if query is None:
            return 0.0
        database = self._database(task)
        gold, mine = await asyncio.gather(
            self._rows(database, task.ground_truth), self._rows(database, query)
        )
        if gold.failure:
            raise MetricFailed(f"the reference query fails: {gold.failure}")
        if mine.failure:
            return 0.0
        ordered = has_order(task.ground_truth)
        return float(await asyncio.to_thread(same_rows, gold.rows, mine.rows, ordered))

    async def _rows(self, database: str | Path, query: str) -> QueryResult:
        try:
            return await self._sandbox.run_query(database, query)
        except (SandboxFailed, SandboxUnavailable, TestsBroken) as error:
            raise MetricFailed(str(error)) from error

    def _database(self, task: Task) -> str | Path:
        value = task.metadata.get("database")
        if not isinstance(value, str) or not value.strip():
            raise TaskUnfit("metadata['database'] must be an SQL script or the name of a file")
        if "\n" in value or not value.endswith(_FILES):
            return value
        if self.databases is None:
            raise TaskUnfit(f"the task names the database {value!r}: set the option `databases`")
        root = Path(self.databases).resolve()
        try:
            path = (root / value).resolve()
            found = path.is_relative_to(root) and path.is_file()
        except (OSError, ValueError):
            found = False
        if not found:
            raise TaskUnfit(f"metadata['database'] {value!r} is no file below {root}")
        return path


def has_order(query: str) -> bool:
    """Return whether a query orders its rows, not only those of a subquery."""
    words = _WORDS.findall(_QUOTED.sub(" x ", query).lower())
    depth = 0
    for position, word in enumerate(words):
        depth += (word == "(") - (word == ")")
        if depth == 0 and words[position : position + 2] == ["order", "by"]:
            return True
    return False


def same_rows(gold: Sequence[Row], mine: Sequence[Row], ordered: bool) -> bool:
    """Return whether rows are equal, as multisets unless the order counts."""
    if len(gold) != len(mine):
        return False
    if not ordered:
        gold, mine = sorted(gold, key=_key), sorted(mine, key=_key)
    return all(_same_row(one, other) for one, other in zip(gold, mine, strict=True))


def _key(row: Row) -> tuple[list[str], list[float]]:
    # Numbers last: numbers that differ by rounding then cannot tear rows apart that text tells.
    others = [repr(cell) if not isinstance(cell, (int, float)) else "" for cell in row]
    return others, [cell for cell in row if isinstance(cell, (int, float))]


def _same_row(one: Row, other: Row) -> bool:
    return len(one) == len(other) and all(map(_same_cell, one, other))


def _same_cell(one: Cell, other: Cell) -> bool:
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        if isinstance(one, int) and isinstance(other, int):
            return one == other
        return math.isclose(one, other, rel_tol=_CLOSE, abs_tol=_CLOSE)
    return type(one) is type(other) and one == other
