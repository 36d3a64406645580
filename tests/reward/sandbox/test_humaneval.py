"""All of HumanEval: every canonical solution passes, its mutants do not."""

from __future__ import annotations

import ast
import asyncio
import copy
import gzip
import json

import pytest

from reward.sandbox import Limits, Sandbox, TestReport
from tests.conftest import SHARED_DATA

HUMANEVAL = SHARED_DATA / "HumanEval.jsonl.gz"
pytestmark = pytest.mark.skipif(not HUMANEVAL.exists(), reason=f"{HUMANEVAL} is not here")

Problem = dict[str, str]


@pytest.fixture(scope="module")
def problems() -> list[Problem]:
    with gzip.open(HUMANEVAL, "rt") as file:
        return [json.loads(line) for line in file]


def run_all(problems: list[Problem], programs: list[str]) -> list[TestReport]:
    sandbox = Sandbox(Limits(cpu_s=3, wall_s=10.0))

    async def run() -> list[TestReport]:
        return await asyncio.gather(
            *(
                sandbox.run_tests(program, p["test"], p["entry_point"], prefix=p["prompt"])
                for p, program in zip(problems, programs, strict=True)
            )
        )

    return asyncio.run(run())


def canonical(problem: Problem) -> str:
    return problem["prompt"] + problem["canonical_solution"]


def returning_none(problem: Problem) -> str:
    """The solution with the entry point's work done and its result thrown away."""
    name = problem["entry_point"]
    return f"{canonical(problem)}\n\n_kept = {name}\ndef {name}(*a, **k):\n    _kept(*a, **k)\n"


class Mutant(ast.NodeTransformer):
    """Changes one place: a comparison, an arithmetic sign, a constant, a truth value."""

    OPPOSITE = {
        ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
        ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In,
        ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Mod: ast.FloorDiv,
    }  # fmt: skip

    def __init__(self, which: int) -> None:
        self.which = which
        self.places = 0

    def _here(self) -> bool:
        self.places += 1
        return self.places - 1 == self.which

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        kind = self.OPPOSITE.get(type(node.ops[0]))
        if kind and self._here():
            node.ops[0] = kind()
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        kind = self.OPPOSITE.get(type(node.op))
        if kind and self._here():
            node.op = kind()
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        self.generic_visit(node)
        if node.value is not None and self._here():
            node.value = ast.Tuple([node.value, ast.Constant("changed")], ast.Load())
        return node


def mutants(problem: Problem, most: int) -> list[str]:
    tree = ast.parse(canonical(problem))
    counter = Mutant(-1)
    counter.visit(copy.deepcopy(tree))
    step = max(1, counter.places // most)
    chosen = range(0, counter.places, step)[:most]
    return [
        ast.unparse(ast.fix_missing_locations(Mutant(which).visit(copy.deepcopy(tree))))
        for which in chosen
    ]


def test_every_canonical_solution_passes(problems: list[Problem]) -> None:
    assert len(problems) == 164
    reports = run_all(problems, [canonical(p) for p in problems])
    failed = [
        (p["task_id"], r) for p, r in zip(problems, reports, strict=True) if r.passed != r.total
    ]
    assert failed == []
    assert all(report.total == 1 for report in reports)


def test_no_solution_that_returns_nothing_passes(problems: list[Problem]) -> None:
    reports = run_all(problems, [returning_none(p) for p in problems])
    assert [p["task_id"] for p, r in zip(problems, reports, strict=True) if r.passed] == []


def test_a_change_in_one_place_is_noticed(problems: list[Problem]) -> None:
    # Some mutants are equivalent, so the next one of the same problem gets a try.
    unnoticed = [(p, mutants(p, most=4)) for p in problems]
    assert all(changed for _, changed in unnoticed)
    for turn in range(4):
        unnoticed = [(p, changed) for p, changed in unnoticed if turn < len(changed)]
        reports = run_all([p for p, _ in unnoticed], [changed[turn] for _, changed in unnoticed])
        unnoticed = [pair for pair, report in zip(unnoticed, reports, strict=True) if report.passed]
    assert [p["task_id"] for p, _ in unnoticed] == []
