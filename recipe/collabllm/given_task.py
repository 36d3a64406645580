"""A task as people write it by hand: only what there is to say.

    {"task": {"ground_truth": "42"}}     {"goal": "A trip to Lisbon.", "task_id": "trip-1"}

Promises: what is left out is empty; an unknown or bad key is a fault that names it. Knows
nothing of which keys a metric or a user needs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from interaction.seeds import derive_seed
from interaction.task import Task
from recipe.collabllm.json_lines import JsonLine

FLAT = ("ground_truth", "goal", "metadata", "task_id", "family")

_EMPTY_GOAL: Mapping[str, Any] = {"summary": "", "facts": [], "indifferent": {}}
_EMPTY_FACT: Mapping[str, Any] = {"phrases": [], "accepted": [], "alternatives": []}


def read_task(line: JsonLine, *, family: str, task_id: str | None = None) -> Task:
    """Return the task of a line: its object `task`, or keys of its own.

    Args:
        family: Of a task that names none.
        task_id: Of a task that names none; None for one made of what the task says.

    Raises:
        FileFault: If a key is unknown or cannot be used.
    """
    raw, prefix = line.value, ""
    if "task" in raw:
        both = [key for key in FLAT if key in raw]
        if both:
            raise line.fault(both[0], "stands beside 'task': put it into 'task', or leave one out")
        raw, prefix = raw["task"], "task."
        if not isinstance(raw, dict):
            raise line.fault("task", "must be an object such as {'ground_truth': '42'}")
        for key in raw:
            if key not in FLAT:
                raise line.fault(f"task.{key}", f"unknown; the keys are {', '.join(FLAT)}")
    given = {key: raw[key] for key in FLAT if raw.get(key) is not None}
    _check(line, given, prefix)
    task = _task(line, {"family": family, "task_id": task_id or "", **given}, prefix)
    if task.task_id:
        return task
    # Not of the family: it is another where the command names another.
    name = derive_seed(replace(task, family="").to_json())
    return replace(task, task_id=f"task-{name:016x}")


def _check(line: JsonLine, given: dict[str, Any], prefix: str) -> None:
    for key in ("ground_truth", "task_id", "family"):
        value = given.get(key, "")
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise line.fault(prefix + key, "must be a text or a number")
    if not isinstance(given.get("metadata", {}), dict):
        raise line.fault(f"{prefix}metadata", "must be an object")
    if not isinstance(given.get("goal", {}), str | dict):
        raise line.fault(f"{prefix}goal", "must be a text, or an object with a summary")


def _task(line: JsonLine, given: dict[str, Any], prefix: str) -> Task:
    goal = given.get("goal", {})
    raw = {"ground_truth": "", "metadata": {}, **given}
    try:
        raw["goal"] = {**_EMPTY_GOAL, **({"summary": goal} if isinstance(goal, str) else goal)}
        raw["goal"]["facts"] = [{**_EMPTY_FACT, **fact} for fact in raw["goal"]["facts"]]
        return Task.from_json(json.dumps(raw))
    except (TypeError, ValueError) as error:
        reason = f"{error}; give summary, facts (slot, value, statement, phrases) and indifferent"
        raise line.fault(f"{prefix}goal", reason) from error
