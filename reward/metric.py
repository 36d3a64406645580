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


class MetricFailed(RuntimeError):
    """A metric gave no score; the message says why."""


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
    """

    given: int = 0
    count_tokens: Callable[[str], int] = count_words

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
