"""A conversation between a user and the policy: immutable messages and why it ended.

Promises: adding a message makes a new conversation; roles are checked; the simulator's view
is one pure function.
Knows nothing of tokens, goals or scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal, cast, get_args

Role = Literal["system", "user", "assistant"]


class StopReason(str, Enum):
    """Why a conversation ended."""

    USER_DONE = "user_done"  # the user has what they came for, or gave up
    WINDOW = "window"  # the window's user turns are used up; the policy spoke last
    LENGTH = "length"  # a policy turn was cut by its token budget
    POLICY_INVALID = "policy_invalid"  # a policy turn was empty or malformed


@dataclass(frozen=True)
class Message:
    """One turn: who speaks, and what they say."""

    role: Role
    content: str

    def __post_init__(self) -> None:
        if self.role not in get_args(Role):
            raise ValueError(f"role must be one of {get_args(Role)}, got {self.role!r}")
        if not isinstance(self.content, str):
            raise TypeError(f"content must be a string, got {type(self.content).__name__}")

    def to_dict(self) -> dict[str, str]:
        """Return the message as chat templates and endpoints take it."""
        return {"role": self.role, "content": self.content}


@dataclass(frozen=True)
class Conversation:
    """Messages in order, and the reason why nothing follows (None: it goes on)."""

    messages: tuple[Message, ...] = ()
    stop: StopReason | None = None

    @classmethod
    def from_dicts(cls, messages: Iterable[Mapping[str, object]]) -> Conversation:
        """Read `[{"role": ..., "content": ...}]`.

        Raises:
            ValueError, TypeError, KeyError: If a message is not of that shape.
        """
        return cls(
            tuple(
                Message(cast(Role, message["role"]), cast(str, message["content"]))
                for message in messages
            )
        )

    def to_dicts(self) -> list[dict[str, str]]:
        """Return the messages as chat templates and endpoints take them."""
        return [message.to_dict() for message in self.messages]

    def add(self, role: Role, content: str) -> Conversation:
        """Return this conversation with one more message."""
        return replace(self, messages=(*self.messages, Message(role, content)))

    def ended(self, stop: StopReason) -> Conversation:
        """Return this conversation, ended."""
        return replace(self, stop=stop)

    def said_by(self, role: Role) -> list[str]:
        """Return what one role said, in order."""
        return [message.content for message in self.messages if message.role == role]

    @property
    def last(self) -> Message | None:
        """The last message, if there is one."""
        return self.messages[-1] if self.messages else None


def turned_round(conversation: Conversation) -> Conversation:
    """Return the conversation as the user simulator sees it.

    Its own turns become `assistant`, the policy's become `user`; the policy's system prompt is
    left out, because it is none of the user's business.
    """
    swapped: dict[str, Role] = {"user": "assistant", "assistant": "user"}
    return replace(
        conversation,
        messages=tuple(
            Message(swapped[message.role], message.content)
            for message in conversation.messages
            if message.role != "system"
        ),
    )
