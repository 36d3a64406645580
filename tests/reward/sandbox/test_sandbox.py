"""Running tests in the sandbox: forms of tests, what is carried, time, cancelling."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Coroutine
from pathlib import Path

import psutil
import pytest

from reward.sandbox import (
    Ending,
    Limits,
    Protections,
    Sandbox,
    SandboxFailed,
    SandboxUnavailable,
    TestReport,
    TestsBroken,
    active_protections,
)
from reward.sandbox.inside import seccomp
from reward.sandbox.inside.cases import form_of, free_names
from reward.sandbox.protections import NEEDS
from reward.sandbox.supervisor import events
from tests.conftest import PROJECT

QUICK = Limits(cpu_s=1, wall_s=1.5, memory_mb=256)


def run(program: str, tests: str, entry_point: str | None = None, **more: str) -> TestReport:
    return asyncio.run(Sandbox(QUICK).run_tests(program, tests, entry_point, **more))


def outcome(program: str, tests: str, entry_point: str | None = None, **more: str) -> list[bool]:
    return [case.passed for case in run(program, tests, entry_point, **more).cases]


ADD = "def add(a, b):\n    return a + b\n"


class TestForms:
    def test_each_assert_is_a_case(self) -> None:
        tests = "x = add(1, 1)\nassert x == 2\nassert add(1, 1) == 3\nx = 7\nassert x == 7\n"
        report = run(ADD, tests)
        assert [c.passed for c in report.cases] == [True, False, True]
        assert [c.name for c in report.cases] == ["assert 1", "assert 2", "assert 3"]
        assert (report.passed, report.total, report.ending) == (2, 3, Ending.FINISHED)

    def test_check_is_one_case(self) -> None:
        tests = "def check(candidate):\n    assert candidate(1, 2) == 3\n    assert {} \n"
        assert outcome(ADD, tests.format("candidate(1, 1) == 2"), "add") == [True]
        assert outcome(ADD, tests.format("candidate(1, 1) == 3"), "add") == [False]

    def test_each_method_of_unittest_is_a_case(self) -> None:
        tests = """
import unittest
class Sums(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.two = 2
    def test_good(self): self.assertEqual(add(1, 1), self.two)
    def test_bad(self): self.assertEqual(add(1, 1), 3)
    def test_error(self): self.assertEqual(add(1), 3)
    def test_raises(self):
        with self.assertRaises(TypeError): add(1, "x")
    def test_parts(self):
        for n in (1, 2):
            with self.subTest(n=n): self.assertEqual(add(n, 0), 1)
    @unittest.skip("never")
    def test_skipped(self): pass
"""
        passed = {c.name.split(".")[-1]: c.passed for c in run(ADD, tests, "add").cases}
        assert passed == {
            "test_good": True,
            "test_raises": True,
            "test_bad": False,
            "test_error": False,
            "test_parts": False,
            "test_skipped": False,
        }

    def test_each_test_function_is_a_case(self) -> None:
        tests = (
            "def test_a():\n    assert add(1, 1) == 2\ndef test_b():\n    assert add(1, 1) == 1\n"
        )
        assert outcome(ADD, tests) == [True, False]

    def test_the_form_is_found_without_running_anything(self) -> None:
        import ast

        assert form_of(ast.parse("x = 1")) is None
        assert form_of(ast.parse("def test_x(fixture): pass")) is None
        assert form_of(ast.parse("class A(TestCase): pass")) == "unittest"
        assert free_names(ast.parse("import a.b\ny = [x for x in f(a)]\nassert g(len(y))")) == [
            "f",
            "g",
        ]


class TestHelpersOfTheDataSet:
    PREFIX = "import math\ndef double(x):\n    return 2 * x\ndef solve(x):\n    '''Solve.'''\n"
    TESTS = "assert solve(double(2)) == 4\nassert double(1) == 2"

    def test_are_known_to_program_and_tests(self) -> None:
        program = "def solve(x):\n    return double(math.floor(x)) / 2\n"
        assert outcome(program, self.TESTS, "solve", prefix=self.PREFIX) == [True, True]

    def test_cannot_be_replaced_for_the_tests(self) -> None:
        program = "def double(x):\n    return 4\ndef solve(x):\n    return 4\n"
        tests = "assert double(1) == 2"
        assert outcome(program, tests, "solve", prefix=self.PREFIX) == [True]

    def test_a_stub_is_no_solution(self) -> None:
        assert outcome("", self.TESTS, "solve", prefix=self.PREFIX) == [False, True]


class TestWhatIsCarried:
    def test_arguments_changed_in_place(self) -> None:
        program = "def sort(x, y):\n    x.sort(); y['n'] = len(x)\n"
        tests = "x, y = [3, 1], {}\nkept = x\nsort(x, y)\nassert kept == [1, 3] and y == {'n': 2}"
        assert outcome(program, tests) == [True]

    def test_exceptions_by_their_built_in_type(self) -> None:
        program = "class Bad(ValueError): pass\ndef f(kind):\n    raise {'v': Bad('no'), 'k': KeyError('k')}[kind]"
        tests = """
def test_own():
    try: f('v')
    except ValueError as error: assert str(error) == 'no' and type(error) is ValueError
    else: assert False
def test_built_in():
    try: f('k')
    except KeyError as error: assert error.args == ('k',)
"""
        assert outcome(program, tests) == [True, True]

    def test_an_object_is_told_apart_from_a_wrong_answer(self) -> None:
        report = run(
            "class A: pass\ndef f(): return A()\n", "assert f()\nassert f() is None or True"
        )
        assert report.uncarried and report.passed == 0
        assert "candidate.A" in report.reason

    def test_a_function_as_argument_is_not_carried(self) -> None:
        report = run("def f(g): return g(1)\n", "assert f(lambda x: x + 1) == 2")
        assert report.uncarried and report.passed == 0

    def test_what_follows_an_object_is_judged_again(self) -> None:
        program = "def f(x): return object() if x else 1\n"
        report = run(program, "assert f(1)\nassert f(0) == 1")
        assert [(c.passed, c.uncarried) for c in report.cases] == [(False, True), (True, False)]

    def test_dataclasses_may_be_used_inside(self) -> None:
        program = (
            "from __future__ import annotations\nfrom dataclasses import dataclass\n"
            "@dataclass\nclass P:\n    x: int\ndef f(): return P(3).x\n"
        )
        assert outcome(program, "assert f() == 3") == [True]


class TestNoExceptSavesACase:
    @pytest.mark.parametrize(
        "body", ["import os; os._exit(0)", "return object()", "while True: pass"]
    )
    def test_when_the_call_has_no_answer(self, body: str) -> None:
        tests = """
def test_it():
    try: f()
    except BaseException: pass
def test_it_raises():
    import unittest
    with unittest.TestCase().assertRaises(Exception): f()
"""
        report = run(f"def f():\n    {body}\n", tests)
        assert report.passed == 0

    def test_when_the_call_was_made_between_cases(self) -> None:
        tests = """
assert True
try: x = f()
except BaseException: x = None
assert x is None
assert True
"""
        report = run("def f(): return object()", tests)
        assert [c.passed for c in report.cases] == [True, False, True]

    def test_a_program_that_died_passes_nothing_more(self) -> None:
        program = "import os\ndef f(x):\n    if x == 2: os._exit(0)\n    return x\n"
        report = run(program, "assert f(1) == 1\nassert f(2) == 2\nassert f(3) == 3")
        assert [c.passed for c in report.cases] == [True, False, False]


class TestFaultsOfTheTests:
    @pytest.mark.parametrize(
        "tests",
        [
            "import no_such_module\nassert f()",
            "1 / 0\ndef check(candidate): pass",
            "assert f() ==",
            "assert f() == '\udc80'",
        ],
    )
    def test_are_told_apart_from_those_of_the_code(self, tests: str) -> None:
        with pytest.raises(TestsBroken, match="before they call the code"):
            run("def f(): return 1", tests, "f")

    def test_a_program_that_fails_at_load_is_no_fault_of_the_tests(self) -> None:
        report = run("import no_such_module\n", "x = f()\ndef test_a():\n    assert x")
        assert (report.passed, report.total) == (0, 1)
        assert "no_such_module" in report.reason

    def test_no_case_at_all(self) -> None:
        with pytest.raises(TestsBroken, match="no test case"):
            run("def f(): return 1", "x = 1")


def left_over() -> list[int]:
    mine = f"sandbox of {os.getpid()}"
    return [p.pid for p in psutil.process_iter(["cmdline"]) if mine in (p.info["cmdline"] or [])]


def children() -> set[int]:
    """Return this process's children, those to be buried included."""
    return {child.pid for child in psutil.Process().children()}


def all_gone(before: set[int]) -> bool:
    """Say whether no new child is left, not even to bury, nor a process of a run a moment later."""
    if children() - before:
        return False
    deadline = time.monotonic() + 1
    while left_over() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not left_over()


def open_pipes() -> set[str]:
    """Name this process's file descriptors that are pipes."""
    links = [path for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return {f"{path.name} {target}" for path in links if "pipe:" in (target := os.readlink(path))}


def run_and_leave(main: Coroutine[None, None, list[str]]) -> list[str]:
    """Run it in a loop of its own as `asyncio.run` does, but wait for no task that goes on."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(main)
    finally:
        loop.close()


class TestCancellingEveryTask:
    """What `asyncio.run` does after an exception: tasks of asyncio's own are cancelled too."""

    @pytest.mark.timeout(60)
    @pytest.mark.parametrize("after_ms", [0, 5, 20, 50, 100, 300])
    @pytest.mark.parametrize("kind", ["tests", "query"])
    def test_ends_all_tasks_and_processes(
        self, after_ms: int, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        before, others = open_pipes(), children()
        began = time.monotonic()
        assert run_and_leave(self._pending(kind, steps=0, seconds=after_ms / 1000)) == []
        assert time.monotonic() - began < after_ms / 1000 + 4
        assert all_gone(others)
        assert open_pipes() <= before
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.timeout(60)
    def test_at_each_of_the_first_steps_of_the_loop(self) -> None:
        others = children()
        for steps in range(12):
            assert run_and_leave(self._pending("tests", steps, seconds=0)) == [], steps
            assert all_gone(others), steps

    @pytest.mark.timeout(60)
    def test_while_the_processes_are_being_ended(self) -> None:
        async def twice() -> list[str]:
            task = asyncio.create_task(self._run("tests"))
            while len(left_over()) < 3:
                await asyncio.sleep(0.02)
            for _ in range(3):
                task.cancel()
                await asyncio.sleep(0)
            return await self._cancel_all()

        others = children()
        assert run_and_leave(twice()) == []
        assert all_gone(others)

    async def _pending(self, kind: str, steps: int, seconds: float) -> list[str]:
        """Start four runs, cancel all tasks, and return those that go on."""
        started = [asyncio.create_task(self._run(kind)) for _ in range(4)]
        for _ in range(steps):
            await asyncio.sleep(0)
        await asyncio.sleep(seconds)
        pending = await self._cancel_all()
        assert all(task.cancelled() for task in started if task.done())
        return pending

    async def _run(self, kind: str) -> None:
        sandbox = Sandbox(Limits(cpu_s=60, wall_s=60), at_once=4)
        if kind == "tests":
            await sandbox.run_tests(TestTime.LOOP, "assert f()")
        else:
            count = "with recursive n(i) as (select 1 union all select i + 1 from n) "
            await sandbox.run_query("create table t(x);", f"{count} select max(i) from n")

    async def _cancel_all(self) -> list[str]:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if not tasks:
            return []
        _, pending = await asyncio.wait(tasks, timeout=3)
        return [str(task) for task in pending]


class TestTime:
    LOOP = "def f():\n    while True: pass\n"

    def test_the_loop_of_events_goes_on_while_four_programs_loop(self) -> None:
        async def tick(gaps: list[float]) -> None:
            while True:
                before = time.monotonic()
                await asyncio.sleep(0.01)
                gaps.append(time.monotonic() - before)

        async def watch() -> tuple[list[float], list[TestReport]]:
            gaps: list[float] = []
            ticker = asyncio.create_task(tick(gaps))
            sandbox = Sandbox(QUICK, at_once=4)
            runs = (sandbox.run_tests(self.LOOP, "assert f()") for _ in range(4))
            reports = await asyncio.gather(*runs)
            ticker.cancel()
            return gaps, reports

        gaps, reports = asyncio.run(watch())
        assert all(report.passed == 0 for report in reports)
        assert len(gaps) > 30 and sorted(gaps)[len(gaps) // 2] < 0.1 and max(gaps) < 1.0

    def test_what_passed_before_the_time_was_up_counts(self) -> None:
        program = "import time\ndef f(x):\n    if x: time.sleep(99)\n    return x\n"
        report = run(program, "assert f(0) == 0\nassert f(1) == 1\nassert f(0) == 0")
        assert [c.passed for c in report.cases] == [True, False, False]
        assert report.ending == Ending.TIMEOUT and report.elapsed_s < 5

    def test_cancelling_ends_every_process(self) -> None:
        async def cancelled() -> float:
            sandbox = Sandbox(Limits(cpu_s=60, wall_s=60))
            task = asyncio.create_task(sandbox.run_tests(self.LOOP, "assert f()"))
            while len(left_over()) < 3:
                await asyncio.sleep(0.02)
            await asyncio.sleep(0.3)
            started = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return time.monotonic() - started

        assert asyncio.run(cancelled()) < 2
        assert left_over() == []

    def test_no_more_run_at_once_than_allowed(self) -> None:
        async def count() -> int:
            sandbox = Sandbox(QUICK, at_once=1)
            runs = [
                asyncio.create_task(sandbox.run_tests("def f(): return 1", "assert f()"))
                for _ in range(4)
            ]
            most = 0
            while not all(task.done() for task in runs):
                launchers = [p for p in psutil.Process().children() if p.pid in left_over()]
                most = max(most, len(launchers))
                await asyncio.sleep(0.01)
            return most

        assert asyncio.run(count()) == 1

    def test_one_sandbox_serves_several_loops(self) -> None:
        sandbox = Sandbox(QUICK, at_once=1)

        async def two() -> int:
            runs = (sandbox.run_tests("def f(): return 1", "assert f()") for _ in range(2))
            return sum(report.passed for report in await asyncio.gather(*runs))

        assert asyncio.run(two()) == asyncio.run(two()) == 2


class TestProtections:
    def test_are_found_out_and_enough_here(self) -> None:
        found = active_protections()
        assert found.missing == () and found.rlimits
        assert "-> enough" in str(found) and "seccomp" in str(found)

    def test_missing_ones_are_named(self) -> None:
        assert set(Protections().missing) == set(NEEDS)
        assert Protections(rlimits=True, seccomp=True).missing == (
            "no writes outside its folder",
            "home and keys out of sight",
        )
        assert "NOT ENOUGH" in str(Protections())

    @pytest.mark.parametrize(
        ("without", "missing"),
        [
            ({"rlimits"}, "limits on time and memory"),
            ({"namespaces", "seccomp"}, "no network"),
            ({"own_root", "landlock"}, "no writes outside"),
        ],
    )
    def test_without_enough_no_code_runs(self, without: set[str], missing: str) -> None:
        sandbox = Sandbox(QUICK, without=frozenset(without))
        with pytest.raises(SandboxUnavailable, match=missing):
            asyncio.run(sandbox.run_tests(ADD, "assert add(1, 1) == 2"))

    def test_a_weak_sandbox_has_to_be_asked_for(self) -> None:
        sandbox = Sandbox(QUICK, allow_weak=True, without=frozenset({"own_root", "landlock"}))
        report = asyncio.run(sandbox.run_tests(ADD, "assert add(1, 1) == 2"))
        assert report.passed == 1 and "own_root" not in report.protections

    def test_limits_must_be_positive(self) -> None:
        with pytest.raises(ValueError, match="'cpu_s' must be greater than 0"):
            Limits(cpu_s=0)

    def test_every_jump_of_the_filter_lands_within_it(self) -> None:
        for own_root in (True, False):
            steps = seccomp.build(1, own_root)
            assert len(steps) < 4096
            for position, (code, yes, no, _) in enumerate(steps):
                assert max(yes, no) < 256 and (
                    code == 0x06 or position + 1 + max(yes, no) < len(steps)
                )


@pytest.mark.parametrize("token", ["stolen", "right"])
def test_only_events_with_the_token_of_the_run_are_believed(token: str) -> None:
    lines = [json.dumps({"token": token, "event": event}) for event in ("ready", "done")]

    async def listen() -> list[str]:
        output = asyncio.StreamReader()
        output.feed_data("".join(f"{line}\n" for line in lines).encode())
        output.feed_eof()
        return [event["event"] async for event in events(output, "right", 5.0)]

    if token == "right":
        assert asyncio.run(listen()) == ["ready", "done"]
    else:
        with pytest.raises(SandboxFailed, match="did not get ready"):
            asyncio.run(listen())


def test_the_command_checks_this_machine() -> None:
    command = [sys.executable, "-m", "reward.sandbox"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=PROJECT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "-> enough" in done.stdout and "NOT AS IT SHOULD" not in done.stdout
    assert "ms a run" in done.stdout


class TestThreadsAndFiles:
    def test_sets_have_the_same_order_in_every_run(self) -> None:
        program = "def f(): raise ValueError(hash('a'))\n"
        reasons = {run(program, "assert f()").reason for _ in range(2)}
        assert len(reasons) == 1

    def test_threads_and_event_loops_of_the_program_work(self) -> None:
        program = """
import asyncio, threading
def f():
    seen = []
    t = threading.Thread(target=seen.append, args=(1,)); t.start(); t.join()
    async def g():
        await asyncio.sleep(0)
        return 2
    return seen + [asyncio.run(g())]
"""
        report = run(program, "assert f() == [1, 2]")
        assert report.passed == 1, report

    def test_the_program_has_a_temporary_folder(self) -> None:
        program = """
import tempfile, os
def f():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x")
        open(path, "w").write("y")
        return open(path).read()
"""
        assert outcome(program, "assert f() == 'y'") == [True]

    def test_nothing_of_a_run_is_there_in_the_next(self) -> None:
        program = (
            "import os\ndef f():\n    had = os.listdir('/tmp'); open('/tmp/x', 'w'); return had\n"
        )
        for _ in range(2):
            assert outcome(program, "assert f() == []") == [True]
