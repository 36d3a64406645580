"""Conversations: immutability, roles, and the simulator's view."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interaction.conversation import Conversation, Message, StopReason, turned_round

messages = st.builds(
    Message, st.sampled_from(["system", "user", "assistant"]), st.text(max_size=40)
)
conversations = st.builds(Conversation, st.lists(messages, max_size=8).map(tuple))


def test_adding_a_message_leaves_the_conversation_as_it_was() -> None:
    start = Conversation().add("user", "hello")
    longer = start.add("assistant", "hi")
    assert len(start.messages) == 1
    assert [m.content for m in longer.messages] == ["hello", "hi"]


def test_a_conversation_cannot_be_changed_in_place() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Conversation().stop = StopReason.WINDOW  # type: ignore[misc]


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(ValueError, match="role must be one of"):
        Message("tool", "x")  # type: ignore[arg-type]


def test_content_that_is_not_text_is_refused() -> None:
    with pytest.raises(TypeError, match="content must be a string"):
        Conversation.from_dicts([{"role": "user", "content": None}])


@given(conversations)
def test_turning_round_twice_gives_the_conversation_without_its_system_messages(
    conversation: Conversation,
) -> None:
    spoken = tuple(m for m in conversation.messages if m.role != "system")
    assert turned_round(turned_round(conversation)).messages == spoken


@given(conversations)
def test_a_conversation_survives_the_way_through_dicts(conversation: Conversation) -> None:
    assert Conversation.from_dicts(conversation.to_dicts()) == conversation
