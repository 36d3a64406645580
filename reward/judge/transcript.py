"""A conversation as the judge sees it, and back.

The judge sees what the user saw: neither the policy's system prompt, so that differently
prompted policies are judged alike, nor its thinking.
Promises: one line of JSON a turn, and one for why it ended; `read_turns` gives exactly the
conversation that was shown. Knows nothing of fences or questions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from interaction.conversation import Conversation, Message, StopReason
from interaction.spoken import as_heard
from reward.judge.question import JudgeFailed
from reward.judge.quoted import quoted


@dataclass(frozen=True)
class Shown:
    """A conversation as it is shown.

    Attributes:
        conversation: Without what is hidden from the judge.
        given: Leading messages of it that were there before the policy spoke.
    """

    conversation: Conversation
    given: int

    @property
    def first(self) -> int:
        """The number of the first turn that is judged, from 1."""
        return self.given + 1


def shown(conversation: Conversation, given: int) -> Shown:
    """Return a conversation as the judge sees it.

    Args:
        conversation: As it was.
        given: Leading messages that were there before the policy spoke.

    Raises:
        JudgeFailed: If the policy has no turn in it.
    """
    if not any(m.role == "assistant" for m in conversation.messages[given:]):
        raise JudgeFailed("the conversation has no policy turn")
    heard = as_heard(conversation).messages
    seen = tuple(m for m in heard if m.role != "system")
    hidden = sum(m.role == "system" for m in heard[:given])
    return Shown(replace(conversation, messages=seen), min(given, len(heard)) - hidden)


def turn_lines(conversation: Conversation, start: int = 0) -> list[str]:
    """Return a conversation's turns from position `start` on, and why it ended.

    Raises:
        ValueError: If a text holds half a surrogate pair.
    """
    turns: list[dict[str, object]] = [
        {"turn": number, "role": message.role, "text": message.content}
        for number, message in enumerate(conversation.messages, 1)
    ]
    ended = [{"ended": conversation.stop.value}] if conversation.stop else []
    return [quoted(line) for line in [*turns[start:], *ended]]


def read_turns(lines: Sequence[str]) -> Conversation:
    """Return the conversation that `turn_lines` showed from its start on.

    Raises:
        ValueError, KeyError: If the lines are no such turns in order.
    """
    read = [json.loads(line) for line in lines if line]
    stop = StopReason(read.pop()["ended"]) if read and "ended" in read[-1] else None
    if [line["turn"] for line in read] != list(range(1, len(read) + 1)):
        raise ValueError("the turns are not numbered in order")
    return Conversation(tuple(Message(line["role"], line["text"]) for line in read), stop)
