"""What a user wants: a task with a goal that the policy does not see.

Promises: immutable; a task survives the way through JSON (one column of a parquet row).
Knows nothing of how a goal is talked about or scored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Fact:
    """One thing that only the user knows.

    Attributes:
        slot: Its name within the task, e.g. "departure city".
        value: What identifies it in a text, e.g. "from Lisbon".
        statement: How the user says it in a sentence.
        phrases: What a question mentions that asks for it: names, synonyms, question forms.
        accepted: Other wordings that count as respecting it in an answer.
        alternatives: Values of the same slot that would be wrong assumptions.
    """

    slot: str
    value: str
    statement: str
    phrases: tuple[str, ...]
    accepted: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True)
class Goal:
    """The user's facts, and what they have no preference about.

    Attributes:
        summary: The whole goal in a sentence or two, for users and judges, never the policy.
        facts: What the user will say if asked.
        indifferent: Slots without a preference, each with the phrases that ask for it.
    """

    summary: str
    facts: tuple[Fact, ...] = ()
    indifferent: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """A problem to be solved together.

    Attributes:
        task_id: Names the underlying problem; data splits go by it.
        family: "planning", "math", ...
        goal: What only the user knows.
        ground_truth: The right answer where there is one, else "".
        metadata: Whatever the family wants to keep, JSON values only.
    """

    task_id: str
    family: str
    goal: Goal
    ground_truth: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the task as one line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Task:
        """Read what `to_json` wrote.

        Raises:
            ValueError: If it is not such a task; the message says what is wrong.
        """
        try:
            return _task(json.loads(text))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a task: {type(error).__name__}: {error}") from error


def _task(raw: dict[str, Any]) -> Task:
    goal = raw["goal"]
    return Task(
        task_id=str(raw["task_id"]),
        family=str(raw["family"]),
        goal=Goal(
            summary=str(goal["summary"]),
            facts=tuple(_fact(fact) for fact in goal["facts"]),
            indifferent={slot: tuple(asks) for slot, asks in goal["indifferent"].items()},
        ),
        ground_truth=str(raw["ground_truth"]),
        metadata=raw["metadata"],
    )


def _fact(raw: dict[str, Any]) -> Fact:
    return Fact(
        slot=str(raw["slot"]),
        value=str(raw["value"]),
        statement=str(raw["statement"]),
        phrases=tuple(raw["phrases"]),
        accepted=tuple(raw["accepted"]),
        alternatives=tuple(raw["alternatives"]),
    )
