"""What a model wrote, and what of it is said: thinking and signs of the end taken out.

Promises: pure; the text that was given is left as it is. Knows nothing of users or policies.
"""

from __future__ import annotations

import re
from dataclasses import replace

from interaction.conversation import Conversation, Message

NOTHING_SAID = "(says nothing)"
_TAG = re.compile(r"<(/?)think(?:ing)?>", re.I)
# The bare word counts in capitals at the end only: people do say "terminate".
_END = re.compile(
    r"\[\[\s*TERMINATE(?:[ _]CHAT)?\s*\]\]|(?<!#)#{2,}\s*(?:STOP|END)\s*#{2,}|"
    r"\[\s*END OF CHAT\s*\]|\bTERMINATE\b[.!\s]*\Z"
)


def without_thinking(text: str) -> str:
    """Return a text without what a model thought in it, whether or not it closed the thought.

    A thought that was never opened reaches back to the start, one never closed to the end.
    """
    said: list[str] = []
    since: int | None = 0  # where the text that is said goes on; None inside a thought
    for tag in _TAG.finditer(text):
        if not tag[1]:
            if since is not None:
                said.append(text[since : tag.start()])
            since = None
        else:
            if since is not None:
                said.clear()
            since = tag.end()
    return "".join([*said, text[since:] if since is not None else ""]).strip()


def without_end_sign(text: str) -> tuple[str, bool]:
    """Return a text without the signs that end a conversation, and whether it had one."""
    rest, found = _END.subn("", text)
    return rest.strip(), found > 0


def as_heard(conversation: Conversation) -> Conversation:
    """Return a conversation as its user hears it: without the assistant's thinking."""
    return replace(
        conversation,
        messages=tuple(
            Message(m.role, without_thinking(m.content) or NOTHING_SAID)
            if m.role == "assistant"
            else m
            for m in conversation.messages
        ),
    )
