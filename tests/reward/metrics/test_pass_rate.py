"""`pass_rate`: what is scored, what is no score, and what is found before a run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interaction.conversation import Conversation
from interaction.task import Goal, Task
from reward.metric import ChecksTask, MetricContext, MetricFailed, TaskUnfit
from reward.metrics.pass_rate import PassRate
from reward.registry import make_metric

TESTS = (
    "assert add(1, 2) == 3\nassert add(0, 0) == 0\nassert add(-1, 1) == 0\nassert add(2, 2) == 4"
)
GOOD = "def add(a, b):\n    return a + b"
METRIC = PassRate(cpu_s=2, wall_s=5.0)


def task(tests: Any = TESTS, truth: str = "", **metadata: Any) -> Task:
    return Task("t", "code", Goal("g"), truth, {"tests": tests, "entry_point": "add", **metadata})


def said(*turns: str) -> Conversation:
    talk = Conversation()
    for turn in turns:
        talk = talk.add("user", "Add two numbers, please.").add("assistant", turn)
    return talk


def block(code: str) -> str:
    return f"Here you are:\n\n```python\n{code}\n```\n"


def score(problem: Task, talk: Conversation, metric: PassRate = METRIC) -> float:
    return asyncio.run(metric.score(problem, talk, MetricContext()))


class TestScore:
    def test_is_the_share_of_passed_cases(self) -> None:
        assert score(task(), said(block(GOOD))) == 1
        assert score(task(), said(block("def add(a, b):\n    return a - b"))) == 0.25
        assert score(task(), said(block("def add(a, b):\n    return None"))) == 0

    def test_goes_by_the_last_code_delivered(self) -> None:
        talk = said(block("def add(a, b): return 0"), block(GOOD), "You are welcome!")
        assert score(task(), talk) == 1

    def test_is_zero_without_code(self) -> None:
        assert score(task(), said("Use a plus sign.")) == 0
        assert score(task(), Conversation()) == 0

    def test_is_zero_for_code_that_is_none(self) -> None:
        assert score(task(), said(block("def add(a, b: return"))) == 0

    def test_is_zero_for_code_that_patches_its_tests(self) -> None:
        code = "import builtins, os\nbuiltins.AssertionError = Warning\ndef add(a, b): os._exit(0)"
        assert score(task(), said(block(code))) == 0

    def test_helpers_of_the_task_are_there(self) -> None:
        problem = task(code_prefix="def one(): return 1\n")
        assert score(problem, said(block("def add(a, b): return (a + b) * one()"))) == 1

    def test_installed_packages_are_there_only_if_asked_for(self) -> None:
        code = "import numpy\ndef add(a, b): return numpy.add(a, b)"
        assert score(task(), said(block(code))) == 0
        metric = PassRate(packages=True, memory_mb=2048)
        assert score(task(), said(block(code)), metric) == 1


class TestNoScore:
    OBJECT = "class Sum:\n    pass\ndef add(a, b): return Sum()"

    def test_a_result_that_is_no_data_cannot_be_judged_without_a_reference(self) -> None:
        with pytest.raises(MetricFailed, match=r"cannot be judged .*candidate\.Sum"):
            score(task(), said(block(self.OBJECT)))

    def test_a_reference_shows_that_the_code_is_to_blame(self) -> None:
        assert score(task(truth=GOOD), said(block(self.OBJECT))) == 0

    def test_a_reference_shows_that_the_tests_are_to_blame(self) -> None:
        problem = task("assert add(1, 2).real == 3", truth=self.OBJECT)
        with pytest.raises(MetricFailed, match="reference solution does not pass here"):
            score(problem, said(block("def add(a, b): return None")))

    def test_code_that_passes_needs_no_reference(self) -> None:
        assert score(task(truth="def add(a, b): return 0"), said(block(GOOD))) == 1

    def test_tests_that_fail_on_their_own(self) -> None:
        with pytest.raises(MetricFailed, match="before they call the code"):
            score(task("import no_such_module\nassert add(1, 2) == 3"), said(block(GOOD)))

    def test_an_unfit_task(self) -> None:
        with pytest.raises(MetricFailed, match="has no test"):
            score(task("x = 1"), said(block(GOOD)))


class TestCheck:
    def test_a_fit_task_passes(self) -> None:
        assert isinstance(METRIC, ChecksTask)
        METRIC.check(task())
        METRIC.check(task("def check(candidate): assert candidate(1, 1) == 2", truth=GOOD))

    @pytest.mark.parametrize(
        ("problem", "reason"),
        [
            (Task("t", "code", Goal("g")), r"metadata\['tests'\] must be a text"),
            (task(["assert add"]), r"metadata\['tests'\] must be a text"),
            (task(" \n"), r"metadata\['tests'\] must be a text"),
            (task("assert add(1, 2) =="), r"metadata\['tests'\] is not Python"),
            (task("(" * 500), r"metadata\['tests'\] is not Python"),
            (task("assert '\0'"), r"metadata\['tests'\] is not Python"),
            (task("add(1, 2)"), "has no test"),
            (task("def check(candidate): pass", entry_point=None), "must name the function"),
            (task("def check(candidate): pass", entry_point="a b"), "must name the function"),
            (task(entry_point=5), r"metadata\['entry_point'\] must be a text"),
            (task(code_prefix="def f(:"), r"metadata\['code_prefix'\] is not Python"),
            (task(truth="    return a + b"), "ground_truth .* is not Python"),
            (task(truth="x = 1"), "must be a whole program that defines 'add'"),
            (task("from unittest import mock\n" + TESTS), "mock, which cannot reach"),
        ],
    )
    def test_an_unfit_task_is_told_what_is_wrong(self, problem: Task, reason: str) -> None:
        with pytest.raises(TaskUnfit, match=reason):
            METRIC.check(problem)


def test_is_made_by_name_with_its_options() -> None:
    metric = make_metric("pass_rate", {"cpu_s": 1, "at_once": 2})
    assert metric.range == (0.0, 1.0)
    with pytest.raises(ValueError, match="no_option"):
        make_metric("pass_rate", {"no_option": 1})
    with pytest.raises(ValueError, match="cpu_s"):
        make_metric("pass_rate", {"cpu_s": 0})
