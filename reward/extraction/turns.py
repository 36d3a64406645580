"""The policy's turns as texts, and the sentences of a text that only ask.

Promises: in order, without thinking and without what was there before the policy spoke.
Knows nothing of what is looked for in them.
"""

from __future__ import annotations

import re

from interaction.conversation import Conversation
from interaction.spoken import without_thinking
from reward.metric import MetricContext

# A sentence ends on a mark before a space: "3.5" does not end one.
_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?](?!\s|$)[^.!?\n]*)*(?:[.!?]+|\n|$)")


def policy_texts(conversation: Conversation, context: MetricContext) -> list[str]:
    """Return what the policy said, turn by turn; a turn of nothing but thinking is ""."""
    return [
        without_thinking(conversation.messages[position].content)
        for position in context.policy_turns(conversation)
    ]


def without_questions(text: str) -> str:
    """Return a text without its sentences that end on a question mark."""
    return _SENTENCE.sub(lambda found: "" if found[0].rstrip().endswith("?") else found[0], text)
