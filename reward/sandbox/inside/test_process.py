"""The process of the tests: runs them against the functions of another process.

Promises: tells the verdict of every case over a channel of its own, each message with the run's
token; no line of the code under test is executed here. Knows nothing of locking in.
"""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Callable, Iterable

from . import cases
from .remote import Remote

_LONGEST_REASON = 300
Report = Callable[..., None]


def run(remote: Remote, report: Report, job: dict[str, str | None]) -> None:
    """Run the tests and report every case.

    Args:
        remote: The code under test.
        report: Called with `event="cases"`, then `event="case"` for each, as keywords.
        job: `tests`, `entry_point` or None, and `prefix`, the data set's own helpers, which
            the tests may use and the program cannot replace.
    """
    try:
        tree = ast.parse(job["tests"] or "")
        module = _module(remote, tree, job)
    except BaseException as error:
        report(event="broken", reason=_reason(error, remote))
        return
    remote.wait_until_loaded()
    remote.next_case()
    form = cases.form_of(tree)
    if form == cases.ASSERTS:
        _run_asserts(tree, module.__dict__, remote, report)
        return
    try:
        exec(compile(tree, "tests", "exec"), module.__dict__)  # noqa: S102
    except BaseException as error:
        own = not remote.calls and not remote.gone
        report(event="broken" if own else "unloaded", reason=_reason(error, remote))
        return
    if form == cases.UNITTEST:
        _run_unittest(module, remote, report)
    else:
        _run_functions(_functions(form, tree, module, remote, job), remote, report)


def _module(remote: Remote, tree: ast.Module, job: dict[str, str | None]) -> types.ModuleType:
    module = types.ModuleType("tests")
    sys.modules["tests"] = module
    exec(compile(job["prefix"] or "", "prefix", "exec"), module.__dict__)  # noqa: S102
    entry_point = job["entry_point"]
    for name in cases.free_names(tree):
        if name not in module.__dict__:
            module.__dict__[name] = remote.function(name)
    if entry_point:
        module.__dict__[entry_point] = remote.function(entry_point)
        module.__dict__["candidate"] = module.__dict__[entry_point]
    return module


def _functions(
    form: str | None,
    tree: ast.Module,
    module: types.ModuleType,
    remote: Remote,
    job: dict[str, str | None],
) -> dict[str, Callable[[], object]]:
    if form == cases.CHECK:
        check, candidate = module.__dict__["check"], remote.function(job["entry_point"] or "")
        return {"check": lambda: check(candidate)}
    return {name: module.__dict__[name] for name in cases.test_functions(tree)}


def _run_functions(
    functions: dict[str, Callable[[], object]], remote: Remote, report: Report
) -> None:
    report(event="cases", names=list(functions))
    for name, function in functions.items():
        _run_case(name, function, remote, report)


def _run_asserts(
    tree: ast.Module, namespace: dict[str, object], remote: Remote, report: Report
) -> None:
    total = sum(isinstance(node, ast.Assert) for node in tree.body)
    names = iter(_numbered(total))
    report(event="cases", names=_numbered(total))
    for node in tree.body:
        code = compile(ast.Module([node], []), "tests", "exec")

        def execute(code: types.CodeType = code) -> None:
            exec(code, namespace)  # noqa: S102

        if isinstance(node, ast.Assert):
            _run_case(next(names), execute, remote, report)
        elif reason := _own_fault(execute, remote):
            report(event="broken", reason=reason)
            return


def _numbered(total: int) -> list[str]:
    return [f"assert {number}" for number in range(1, total + 1)]


def _own_fault(execute: Callable[[], object], remote: Remote) -> str:
    """Execute a statement between cases; return why it failed if the code had no part in it."""
    try:
        execute()
    except BaseException as error:
        return "" if remote.calls else _reason(error, remote)
    return ""


def _run_case(name: str, function: Callable[[], object], remote: Remote, report: Report) -> None:
    reason = ""
    try:
        function()
    except BaseException as error:
        reason = _reason(error, remote)
    _report_case(name, reason, remote, report)


def _report_case(name: str, reason: str, remote: Remote, report: Report) -> None:
    reason = remote.fault or reason
    report(
        event="case",
        name=name,
        passed=not reason,
        reason=reason[:_LONGEST_REASON],
        uncarried=remote.uncarried,
    )
    remote.next_case()


def _reason(error: BaseException, remote: Remote) -> str:
    return (remote.fault or f"{type(error).__name__}: {error}")[:_LONGEST_REASON]


def _run_unittest(module: types.ModuleType, remote: Remote, report: Report) -> None:
    import unittest

    class Result(unittest.TestResult):
        """Reports each method as it ends."""

        def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802
            super().startTest(test)
            self.reason = "the case did not succeed"

        def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
            self.reason = ""

        def addFailure(self, test: unittest.TestCase, err: object) -> None:  # noqa: N802
            self.reason = _reason(_error(err), remote)

        addError = addFailure

        def addSubTest(  # noqa: N802
            self, test: unittest.TestCase, subtest: unittest.TestCase, err: object
        ) -> None:
            if err is not None:
                self.reason = _reason(_error(err), remote)

        def addExpectedFailure(self, test: unittest.TestCase, err: object) -> None:  # noqa: N802
            self.reason = ""

        def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
            super().stopTest(test)
            _report_case(test.id(), self.reason, remote, report)

    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    report(event="cases", names=_names(suite))
    suite.run(Result())


def _error(err: object) -> BaseException:
    error = err[1] if isinstance(err, tuple) else err
    return error if isinstance(error, BaseException) else RuntimeError("no reason given")


def _names(suite: Iterable[object]) -> list[str]:
    names: list[str] = []
    for test in suite:
        if isinstance(test, Iterable):
            names += _names(test)
        else:
            names.append(str(getattr(test, "id", test.__str__)()))
    return names
