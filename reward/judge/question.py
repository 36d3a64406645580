"""What a metric asks of the judge, and how it gets the answer.

A metric that needs a judge names its `Question`; all questions about one conversation can then
go into a single call. Promises: plain values. Knows nothing of prompts, endpoints or metrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class ScoreField:
    """A number the judge gives.

    Attributes:
        name: Its key in the verdict, an identifier.
        meaning: What the number says, and what its ends mean, in a sentence.
        low, high: Least and greatest value; anything else is no verdict.
    """

    name: str
    meaning: str
    low: float = 0.0
    high: float = 1.0


@dataclass(frozen=True)
class TextField:
    """A text the judge copies out of the conversation.

    Attributes:
        name: Its key in the verdict, an identifier.
        meaning: What to copy, and what to give where there is none, in a sentence.
        pattern: Regular expression that the whole text must match; "" for any text. The
            judge is not told: `meaning` must say it in words.
    """

    name: str
    meaning: str
    pattern: str = ""


Field = ScoreField | TextField
Verdict = Mapping[str, float | str]


@dataclass(frozen=True)
class Question:
    """What one metric wants to know about a conversation.

    Attributes:
        name: The metric's name, an identifier.
        instruction: What to look at, in our own words; never text of a model or a data set.
        fields: What the answer consists of.
        needs_goal, needs_truth: Whether the judge is shown the user's goal, the reference
            answer.
        needs_metadata: Keys of the task's metadata that the judge is shown, as data.
    """

    name: str
    instruction: str
    fields: tuple[Field, ...]
    needs_goal: bool = False
    needs_truth: bool = False
    needs_metadata: tuple[str, ...] = ()


class Verdicts(Protocol):
    """The judge's answers about one conversation; asked for one by one, called for at once."""

    async def of(self, question: Question) -> Verdict:
        """Return the values of a question's fields by name, each of its type and in range.

        Raises:
            JudgeFailed: If the judge gave no usable verdict.
        """
        ...


class JudgeFailed(RuntimeError):
    """The judge gave no usable verdict; the message says why."""
