"""Finds the test cases in a text of tests, in the forms that data sets use.

In this order: `unittest` classes (a case a method), a function `check(candidate)` as HumanEval
has it (one case: a problem is solved or not), functions `test_*` without parameters (a case
each), `assert` statements at top level (a case each, the statements between them as they come).
Promises: pure; nothing is executed. Knows nothing of how cases are run.
"""

from __future__ import annotations

import ast
import builtins

UNITTEST, CHECK, FUNCTIONS, ASSERTS = "unittest", "check", "functions", "asserts"
# Tests that change or look at the process of the code itself cannot work across processes.
_REACHING = ("mock", "patch", "monkeypatch", "redirect_stdout", "redirect_stderr", "capsys")


def form_of(tree: ast.Module) -> str | None:
    """Return the form the tests have, or None if there is no test."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    if any(isinstance(node, ast.ClassDef) and _is_test_case(node) for node in tree.body):
        return UNITTEST
    if any(function.name == "check" for function in functions):
        return CHECK
    if any(_is_test_function(function) for function in functions):
        return FUNCTIONS
    return ASSERTS if any(isinstance(node, ast.Assert) for node in tree.body) else None


def test_functions(tree: ast.Module) -> list[str]:
    """Return the names of the functions that are cases."""
    return [n.name for n in tree.body if isinstance(n, ast.FunctionDef) and _is_test_function(n)]


def free_names(tree: ast.Module) -> list[str]:
    """Return the names the tests use and neither define nor get from Python."""
    used: set[str] = set()
    bound = set(dir(builtins))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).split(".")[0])
    return sorted(used - bound)


def reaching_names(tree: ast.Module) -> list[str]:
    """Return what the tests use to reach into the process of the code."""
    return sorted(_mentioned(tree).intersection(_REACHING))


def _mentioned(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.alias):
            names.update(node.name.split("."))
    return names


def _is_test_case(node: ast.ClassDef) -> bool:
    bases = [base.attr if isinstance(base, ast.Attribute) else base for base in node.bases]
    names = [base.id if isinstance(base, ast.Name) else base for base in bases]
    return any(isinstance(name, str) and name.endswith("TestCase") for name in names)


def _is_test_function(node: ast.FunctionDef) -> bool:
    required = len(node.args.args) - len(node.args.defaults)
    return node.name.startswith("test") and required <= 0
