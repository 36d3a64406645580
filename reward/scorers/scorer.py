"""What gives a conversation a number, and what it is shown.

Promises: it sees what the user saw, up to the policy's last word; a number is finite. Knows
nothing of models or servers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from interaction.conversation import Conversation, Message
from interaction.spoken import as_heard


class ScorerFailed(RuntimeError):
    """There is no number; the message says why."""


class Scorer(Protocol):
    """A reward model."""

    async def number(self, messages: Sequence[Message]) -> float:
        """Return the model's number for a conversation that ends on an assistant turn; finite.

        Raises:
            ScorerFailed: If there is none.
        """
        ...


def shown(conversation: Conversation, last: int) -> list[Message]:
    """Return what a reward model is shown: no system prompt, no thinking, nothing after `last`.

    Args:
        conversation: All of it.
        last: Position of the policy's last turn.
    """
    heard = as_heard(conversation).messages[: last + 1]
    return [message for message in heard if message.role != "system"]


def without_control(messages: Sequence[Message], tokens: Iterable[str]) -> list[dict[str, str]]:
    """Return messages as a chat template takes them, without a tokenizer's control tokens.

    A turn that says "<|im_end|>" would else end there, and could go on as somebody else.
    """
    names = sorted((token for token in tokens if token), key=len, reverse=True)
    control = re.compile("|".join(map(re.escape, names))) if names else None
    return [
        {"role": m.role, "content": control.sub(" ", m.content) if control else m.content}
        for m in messages
    ]


def finite(value: Any) -> float:
    """Return a value as a number.

    Raises:
        ScorerFailed: If it is none, or not finite.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ScorerFailed(f"the reward model gave {str(value)[:80]!r}, which is no finite number")
    return float(value)
