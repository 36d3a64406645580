"""The simulated user's side of a conversation.

Promises: a user is stateless across conversations, all it needs comes in the call; a user
that cannot speak raises `SimulatorFailed`, it never returns an empty turn.
Knows nothing of the policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from interaction.conversation import Conversation
from interaction.task import Task


class SimulatorFailed(RuntimeError):
    """The user simulator gave no usable turn; the message says why.

    Attributes:
        usage: What it cost all the same, by name.
    """

    def __init__(self, reason: str, usage: Mapping[str, float] | None = None) -> None:
        super().__init__(reason)
        self.usage: Mapping[str, float] = usage or {}


def add_usage(*parts: Mapping[str, float]) -> dict[str, float]:
    """Return the sum of several usages by name."""
    total: dict[str, float] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0.0) + amount
    return total


@dataclass(frozen=True)
class UserTurn:
    """What the user said.

    Attributes:
        text: The turn; never empty.
        done: The user ends the conversation with it.
        usage: Tokens and calls it cost, by name; empty for users made of rules.
    """

    text: str
    done: bool = False
    usage: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise SimulatorFailed("the user simulator returned an empty turn")


class SimulatedUser(Protocol):
    """Anything that can take the user's next turn."""

    async def reply(self, task: Task, conversation: Conversation, seed: int) -> UserTurn:
        """Take the user's turn at the end of `conversation`.

        Args:
            task: What this user wants.
            conversation: Ends with an assistant turn.
            seed: Who this user is and how they phrase it; the same for a whole conversation.

        Raises:
            SimulatorFailed: If there is no usable turn.
        """
        ...
