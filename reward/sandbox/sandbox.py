"""Runs code that nobody vouches for, against tests that it cannot reach.

    report = await Sandbox().run_tests(program, tests, entry_point="add")
    report.passed, report.total

Promises: never blocks the event loop; code runs only with the needed protections on; a verdict
never comes from a process that runs the code. Knows nothing of conversations or scores.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sysconfig
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from reward.sandbox import supervisor
from reward.sandbox.inside.wire import Malformed, from_wire
from reward.sandbox.limits import Limits
from reward.sandbox.protections import NEEDS, Protections, unavailable
from reward.sandbox.report import (
    CaseResult,
    Ending,
    QueryResult,
    SandboxFailed,
    SandboxUnavailable,
    TestReport,
    TestsBroken,
)

_Loop = asyncio.AbstractEventLoop


@dataclass(frozen=True)
class Sandbox:
    """A way to run code; each run has processes and files of its own.

    Attributes:
        limits: Of each run.
        at_once: Runs at the same time in this process; None: as many as there are cores.
        packages: Whether code and tests may import this interpreter's installed packages; if
            not, the standard library only.
        allow_weak: Run even where a needed protection is missing. Only for code you trust.
        without: Layers not to use, to see what the others are worth.
    """

    limits: Limits = field(default_factory=Limits)
    at_once: int | None = None
    packages: bool = False
    allow_weak: bool = False
    without: frozenset[str] = frozenset()
    _turns: WeakKeyDictionary[_Loop, asyncio.Semaphore] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )

    async def run_tests(
        self, program: str, tests: str, entry_point: str | None = None, prefix: str = ""
    ) -> TestReport:
        """Run tests against a program.

        Args:
            program: Python source, hostile.
            tests: Python source in one of the forms of `inside/cases.py`.
            entry_point: The function under test; `check(candidate)` needs it.
            prefix: Imports and helpers of the data set, known to both; where the program
                defines the same name, the tests still see the prefix's.

        Raises:
            SandboxUnavailable: If the machine does not give the needed protection.
            SandboxFailed: If the processes do not start.
            TestsBroken: If the tests fail before they call the program.
        """
        token = secrets.token_hex(16)
        frames: list[dict[str, object]] = [
            self._settings("tests", []),
            {"program": program, "prefix": prefix},
            {"token": token, "tests": tests, "entry_point": entry_point, "prefix": prefix},
        ]
        seen, elapsed_s = await self._run(frames, token)
        return _test_report(seen, elapsed_s)

    async def run_query(self, database: str | Path, query: str) -> QueryResult:
        """Run one SQL query on SQLite, reading only.

        Args:
            database: A script that makes it, or the path of its file.
            query: One statement, hostile.

        Raises:
            SandboxUnavailable, SandboxFailed: As for tests.
            TestsBroken: If the database itself cannot be used.
        """
        token = secrets.token_hex(16)
        file = os.path.realpath(database) if isinstance(database, Path) else ""
        job: dict[str, object] = {
            "token": token,
            "file": file,
            "script": "" if file else database,
            "query": query,
            "seconds": self.limits.wall_s,
            "rows": self.limits.rows,
        }
        settings = self._settings("query", [file] if file else [])
        seen, _ = await self._run([settings, job], token)
        return await asyncio.to_thread(_query_result, seen[-1])

    def _settings(self, role: str, visible: list[str]) -> dict[str, object]:
        return {
            "role": role,
            "visible": [*supervisor.library_paths(), *self._package_paths(), *visible],
            "without": sorted(self.without),
            "limits": self.limits.for_kernel(),
            "needs": {} if self.allow_weak else {need: list(any_) for need, any_ in NEEDS.items()},
        }

    def _package_paths(self) -> list[str]:
        paths = sysconfig.get_paths()
        return sorted({paths["purelib"], paths["platlib"]}) if self.packages else []

    async def _run(
        self, frames: list[dict[str, object]], token: str
    ) -> tuple[list[supervisor.Event], float]:
        async with self._turn():
            started = time.monotonic()
            async with supervisor.processes(self._package_paths(), frames) as output:
                seen = [e async for e in supervisor.events(output, token, self.limits.wall_s)]
            elapsed_s = time.monotonic() - started
        if seen[-1]["event"] == "unavailable":
            raise SandboxUnavailable(unavailable(seen[-1]["missing"]))
        return seen, elapsed_s

    def _turn(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        if loop not in self._turns:
            self._turns[loop] = asyncio.Semaphore(self.at_once or os.cpu_count() or 1)
        return self._turns[loop]


async def probe(sandbox: Sandbox | None = None) -> Protections:
    """Lock an idle process in and return which protections hold."""
    sandbox = sandbox or Sandbox(allow_weak=True)
    report = await sandbox.run_tests("def idle(): pass", "assert idle() is None", "idle")
    return Protections.of(report.protections)


def active_protections() -> Protections:
    """Return which protections hold on this machine; takes some 50 ms.

    Raises:
        SandboxFailed: If no process can be started at all.
    """
    return asyncio.run(probe())


def _test_report(seen: list[supervisor.Event], elapsed_s: float) -> TestReport:
    events = {event["event"]: event for event in seen}
    if "broken" in events:
        raise TestsBroken(_broken(str(events["broken"]["reason"])))
    layers = tuple(str(layer) for layer in events["ready"]["layers"])
    if "unloaded" in events:
        failed = CaseResult("load", False, str(events["unloaded"]["reason"]))
        return TestReport((failed,), Ending.FINISHED, layers, elapsed_s)
    endings = {"done": Ending.FINISHED, "timeout": Ending.TIMEOUT}
    ending = endings.get(seen[-1]["event"], Ending.DIED)
    results = [_case(event) for event in seen if event["event"] == "case"]
    names = [str(name) for name in events.get("cases", {}).get("names", ["load"])]
    if not names:
        raise TestsBroken("there is no test case in the tests")
    return TestReport(_in_order(names, results, ending), ending, layers, elapsed_s)


def _broken(reason: str) -> str:
    remedy = " (`packages: true` allows what is installed)" if "No module named" in reason else ""
    return f"the tests fail before they call the code: {reason}{remedy}"


def _in_order(
    names: list[str], results: list[CaseResult], ending: Ending
) -> tuple[CaseResult, ...]:
    found = {result.name: result for result in results}
    why = f"not run: {ending.value}"
    return tuple(found.get(name) or CaseResult(name, False, why) for name in names)


def _case(event: Mapping[str, Any]) -> CaseResult:
    return CaseResult(
        name=str(event["name"]),
        passed=event["passed"] is True,
        reason=str(event["reason"]),
        uncarried=event["uncarried"] is True,
    )


def _query_result(last: supervisor.Event) -> QueryResult:
    if "unusable" in last:
        raise TestsBroken(f"the database cannot be used: {last['unusable']}")
    if last["event"] != "done" or "failed" in last:
        return QueryResult(failure=str(last.get("failed", last["event"])))
    try:
        rows = from_wire(last["rows"])
    except (Malformed, KeyError) as error:
        raise SandboxFailed(f"the rows cannot be read: {error}") from error
    assert isinstance(rows, list)
    return QueryResult(tuple(tuple(row) for row in rows))
