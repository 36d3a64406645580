"""What the judge is told that the policy was not: goal, right answer, metadata of the task.

Promises: only what one of the questions needs; one line of JSON each, because data sets are
hostile too. Knows nothing of fences or conversations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from interaction.task import Goal, Task
from reward.judge.question import Question
from reward.judge.quoted import quoted


def lacks(task: Task, question: Question) -> str:
    """Return what a question needs that a task has not, or ""."""
    if question.needs_truth and not task.ground_truth.strip():
        return f"task {task.task_id!r} has no ground truth"
    missing = [name for name in question.needs_metadata if not task.metadata.get(name)]
    return f"task {task.task_id!r} has no metadata {', '.join(missing)}" if missing else ""


def reference_lines(task: Task, questions: Iterable[Question]) -> list[str]:
    """Return what the judge of these questions may know of a task.

    Raises:
        ValueError: If a text holds half a surrogate pair.
    """
    asked = list(questions)
    lines: list[dict[str, object]] = []
    if any(question.needs_goal for question in asked):
        lines += _goal(task.goal)
    if any(question.needs_truth for question in asked):
        lines.append({"right_answer": task.ground_truth})
    for name in dict.fromkeys(name for question in asked for name in question.needs_metadata):
        lines += _metadata(name, task.metadata.get(name))
    return [quoted(line) for line in lines]


def _goal(goal: Goal) -> Iterator[dict[str, object]]:
    yield {"the_user_wants": goal.summary}
    for fact in goal.facts:
        yield {"the_user_knows": fact.slot, "and_says_if_asked": fact.statement}
    for slot in goal.indifferent:
        yield {"the_user_does_not_mind": slot}


def _metadata(name: str, value: object) -> Iterator[dict[str, object]]:
    """Yield a value, or each item of a list with its number from 1."""
    if not isinstance(value, (list, tuple)):
        yield {name: value}
        return
    for number, item in enumerate(value, 1):
        yield {name: number, "value": item}
