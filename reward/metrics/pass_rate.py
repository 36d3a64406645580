"""`pass_rate`: the share of the tests that the delivered code passes.

The code is the last code block of the policy's turns; it runs in the sandbox, its tests in another
process that it cannot reach. A case is a unittest method, a HumanEval `check` as a whole, a
`test_*` function or a top-level assert. In 0..1; 0 without code, for that is what was delivered.

What tests can see of code across processes is data. If a case fails and the task has a reference
solution (`ground_truth`), the reference has to pass first: if it does not, the tests do not work
here, and that is `MetricFailed`, not a score. So no good code is scored 0 for the sandbox's sake,
and no bad code is left out for returning something odd.
"""

from __future__ import annotations

import ast
import asyncio
from dataclasses import dataclass, field

from interaction.conversation import Conversation
from interaction.task import Task
from reward.extraction import final_code, policy_texts
from reward.metric import MetricContext, MetricFailed, TaskUnfit
from reward.registry import register
from reward.sandbox import Limits, Sandbox, SandboxFailed, SandboxUnavailable, TestsBroken
from reward.sandbox.inside.cases import CHECK, form_of, reaching_names
from reward.sandbox.report import TestReport


@register("pass_rate")
@dataclass(frozen=True)
class PassRate:
    """Passed cases over all cases.

    Attributes:
        cpu_s: CPU time of a run in whole seconds.
        wall_s: Time of a run in seconds.
        memory_mb: Address space of a run in MiB.
        at_once: Runs at the same time; None: as many as there are cores.
        packages: Whether installed packages may be imported, or only the standard library.
        allow_weak: Run code even without the needed protection. Only for code you trust.
    """

    cpu_s: int = 5
    wall_s: float = 15.0
    memory_mb: int = 512
    at_once: int | None = None
    packages: bool = False
    allow_weak: bool = False
    _sandbox: Sandbox = field(init=False, repr=False, compare=False)
    _proven: set[tuple[str, str, str]] = field(
        default_factory=set, init=False, repr=False, compare=False
    )

    range = (0.0, 1.0)

    def __post_init__(self) -> None:
        limits = Limits(cpu_s=self.cpu_s, wall_s=self.wall_s, memory_mb=self.memory_mb)
        sandbox = Sandbox(limits, self.at_once, self.packages, self.allow_weak)
        object.__setattr__(self, "_sandbox", sandbox)

    def check(self, task: Task) -> None:
        """Look at tests, entry point, prefix and reference.

        Raises:
            TaskUnfit: If one is missing or cannot be used.
        """
        tests = _parsed("metadata['tests']", _text(task, "tests"))
        _parsed("metadata['code_prefix']", _text(task, "code_prefix", ""))
        entry_point = _text(task, "entry_point", "")
        form = form_of(tests)
        if form is None:
            raise TaskUnfit(
                "metadata['tests'] has no test: give unittest classes, a function "
                "check(candidate), functions test_* or assert statements"
            )
        if form == CHECK and not entry_point.isidentifier():
            raise TaskUnfit("metadata['entry_point'] must name the function that check() is given")
        if task.ground_truth:
            _check_reference(task.ground_truth, entry_point)
        elif reaching := reaching_names(tests):
            raise TaskUnfit(
                f"metadata['tests'] uses {', '.join(reaching)}, which cannot reach code in another "
                "process: leave the task out, or give a solution as ground_truth that shows it can"
            )

    async def score(self, task: Task, conversation: Conversation, context: MetricContext) -> float:
        """Return the share of passed cases.

        Raises:
            MetricFailed: If the task is unfit, the sandbox does not work, or the tests do not.
        """
        try:
            await asyncio.to_thread(self.check, task)
        except TaskUnfit as error:
            raise MetricFailed(str(error)) from error
        program = final_code(policy_texts(conversation, context))
        if program is None:
            return 0.0
        report = await self._run(task, program)
        if report.passed < report.total:
            await self._judge_tests(task, report)
        return report.passed / report.total

    async def _run(self, task: Task, program: str) -> TestReport:
        tests, prefix = _text(task, "tests"), _text(task, "code_prefix", "")
        entry_point = _text(task, "entry_point", "") or None
        try:
            return await self._sandbox.run_tests(program, tests, entry_point, prefix)
        except (SandboxFailed, SandboxUnavailable, TestsBroken) as error:
            raise MetricFailed(str(error)) from error

    async def _judge_tests(self, task: Task, report: TestReport) -> None:
        """Make sure that it is the code which failed, and not the tests."""
        if task.ground_truth:
            await self._prove(task)
        elif report.uncarried:
            raise MetricFailed(
                f"a case cannot be judged ({report.reason}); a solution as ground_truth would tell "
                "whether code or tests are to blame"
            )

    async def _prove(self, task: Task) -> None:
        """Run the reference, once a task; one that failed is tried again, it may be the load."""
        key = (_text(task, "tests"), _text(task, "code_prefix", ""), task.ground_truth)
        if key in self._proven:
            return
        reference = await self._run(task, task.ground_truth)
        if reference.passed < reference.total:
            raise MetricFailed(f"the reference solution does not pass here: {reference.reason}")
        self._proven.add(key)


def _text(task: Task, key: str, default: str | None = None) -> str:
    value = task.metadata.get(key)
    value = default if value is None else value
    if not isinstance(value, str) or (default is None and not value.strip()):
        raise TaskUnfit(f"metadata[{key!r}] must be a text: the data builder has to put it there")
    return value


def _parsed(what: str, source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise TaskUnfit(f"{what} is not Python: {error}; repair or leave out the row") from error


def _check_reference(source: str, entry_point: str) -> None:
    tree = _parsed("ground_truth (a whole program or empty)", source)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    defined = {node.name for node in tree.body if isinstance(node, kinds)}
    if entry_point and entry_point not in defined:
        raise TaskUnfit(
            f"ground_truth must be a whole program that defines {entry_point!r}, or empty"
        )
