"""What a metric is: one bounded number for one whole conversation.

Promises: a metric that cannot score raises `MetricFailed`; it never returns a number that
stands for a failure. Knows nothing of weights, verl or other metrics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from interaction.conversation import Conversation
from interaction.task import Task
from reward.judge.question import Question, Verdicts


class MetricFailed(RuntimeError):
    """A metric gave no score; the message says why."""


class TaskUnfit(ValueError):
    """A task has not what a metric needs; the message names the key and the remedy."""


def count_words(text: str) -> int:
    """Return a text's words: the token count where no tokenizer is at hand."""
    return len(text.split())


@dataclass(frozen=True)
class MetricContext:
    """What a metric may know besides task and conversation.

    Attributes:
        given: Leading messages that were there before the policy spoke; what comes after is
            scored as the policy's doing.
        count_tokens: Length of a text in the policy's tokens.
        verdicts: The judge's answers about this conversation, for metrics that have a
            `question`; None where there is no judge.
        seed: Of whatever is random about scoring this conversation.
    """

    given: int = 0
    count_tokens: Callable[[str], int] = count_words
    verdicts: Verdicts | None = None
    seed: int = 0

    def policy_turns(self, conversation: Conversation) -> list[int]:
        """Return the positions of the assistant messages that the policy wrote."""
        return [
            position
            for position, message in enumerate(conversation.messages)
            if position >= self.given and message.role == "assistant"
        ]


@runtime_checkable
class Metric(Protocol):
    """Scores a whole conversation. A new metric is one file that registers one class."""

    @property
    def range(self) -> tuple[float, float]:
        """The least and the greatest score there can be."""
        ...

    async def score(self, task: Task, conversation: Conversation, context: MetricContext) -> float:
        """Return the score.

        Raises:
            MetricFailed: If there is none.
        """
        ...


@runtime_checkable
class ChecksTask(Protocol):
    """A metric that needs something of its tasks and can tell before a run begins."""

    def check(self, task: Task) -> None:
        """Look at what the metric needs of a task.

        Raises:
            TaskUnfit: If it is not there or cannot be used.
        """
        ...


@runtime_checkable
class Judged(Protocol):
    """A metric that a judge answers a question for."""

    @property
    def question(self) -> Question:
        """What the judge is asked."""
        ...
