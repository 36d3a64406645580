"""A language model that others than the policy are played by: the simulated user, the judge.

Promises: one call, one answer or `ChatFailed`; a structured answer is an object that fits its
form, never a guess. Knows nothing of HTTP (serving/chat_client.py), prompts or goals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel

from interaction.conversation import Message

ValueT = TypeVar("ValueT")
FormT = TypeVar("FormT", bound=BaseModel)


class ChatFailed(RuntimeError):
    """The model gave no answer; the message says why."""


class ChatUnreadable(ChatFailed):
    """The model answered, but not in the form that was asked for.

    Attributes:
        text: What it said.
    """

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(reason)
        self.text = text


@dataclass(frozen=True)
class ChatAnswer(Generic[ValueT]):
    """An answer.

    Attributes:
        value: The text, or the object that was asked for.
        usage: What it cost, by name: `calls` (retries included), `prompt_tokens`,
            `cached_tokens` (of the prompt, where the endpoint tells), `completion_tokens`,
            `seconds`, and `cost` in the endpoint's currency where prices are known.
    """

    value: ValueT
    usage: Mapping[str, float] = field(default_factory=dict)


class ChatModel(Protocol):
    """Anything that answers messages."""

    async def complete(
        self, messages: Sequence[Message], *, seed: int, max_tokens: int | None = None
    ) -> ChatAnswer[str]:
        """Answer with a text, not empty and not cut off.

        Args:
            messages: Ends with what is to be answered.
            seed: Sent where the endpoint takes one.
            max_tokens: Budget of the answer; None for the endpoint's own.

        Raises:
            ChatFailed: If there is no such answer after all retries.
        """
        ...

    async def structured(
        self,
        messages: Sequence[Message],
        form: type[FormT],
        *,
        seed: int,
        max_tokens: int | None = None,
    ) -> ChatAnswer[FormT]:
        """Answer with an object of a form.

        Raises:
            ChatUnreadable: If the answer does not fit the form; not retried here.
            ChatFailed: If there is no answer after all retries.
        """
        ...
