"""What a run in the sandbox came to.

Promises: plain immutable values; what could not be judged is told apart from what failed.
Knows nothing of how it was found out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class SandboxUnavailable(RuntimeError):
    """This machine gives not enough protection; the message says what to allow."""


class SandboxFailed(RuntimeError):
    """The sandbox itself did not work; this says nothing about the code."""


class TestsBroken(ValueError):
    """The tests fail on their own, before they call the code."""

    __test__ = False  # the name is pytest's, not the class


class Ending(str, Enum):
    """How a run ended."""

    FINISHED = "finished"  # all cases ran
    TIMEOUT = "timeout"  # the wall time was up
    DIED = "died"  # the tests' process ended before its last case, or broke its limits


@dataclass(frozen=True)
class CaseResult:
    """One test case.

    Attributes:
        name: Its name in the tests.
        passed: Whether it passed.
        reason: Why not, at most 300 characters of text that may come from the code.
        uncarried: An argument or a result was no data, so the case could not be judged.
    """

    name: str
    passed: bool
    reason: str = ""
    uncarried: bool = False


@dataclass(frozen=True)
class TestReport:
    """All cases of one run.

    Attributes:
        cases: In the order of the tests; what did not run did not pass.
        ending: How the run ended.
        protections: The layers that held, by name.
        elapsed_s: From the start of the process to its end.
    """

    __test__ = False

    cases: tuple[CaseResult, ...]
    ending: Ending
    protections: tuple[str, ...] = ()
    elapsed_s: float = 0.0

    @property
    def passed(self) -> int:
        """How many cases passed."""
        return sum(case.passed for case in self.cases)

    @property
    def total(self) -> int:
        """How many cases there are, at least 1."""
        return len(self.cases)

    @property
    def uncarried(self) -> bool:
        """Whether a case could not be judged because a value was no data."""
        return any(case.uncarried for case in self.cases)

    @property
    def reason(self) -> str:
        """Why not all passed: the first failed case's reason, "" if there is none."""
        return next((case.reason for case in self.cases if not case.passed), "")


Cell = None | int | float | str | bytes


@dataclass(frozen=True)
class QueryResult:
    """Rows of an SQL query, or why there are none.

    Attributes:
        rows: In the order the database gave them.
        failure: Why the query failed, else "".
    """

    rows: tuple[tuple[Cell, ...], ...] = ()
    failure: str = ""
