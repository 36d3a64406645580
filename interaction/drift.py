"""How a simulated user's turn goes wrong: one rule for each known way.

Promises: pure and by rule; the same reading rejects a turn while it is played and counts it in
the quality report. Knows nothing of models, prompts or statistics.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from interaction.conversation import Conversation
from interaction.drift_rules import (
    answers_task,
    begins_anew,
    gives_advice,
    is_empty,
    offers_help,
    says_again,
)
from interaction.language import NAMES, other_language
from interaction.leakage import invented, leaked, tells_all
from interaction.task import Task


class Drift(str, Enum):
    """What is wrong with a user's turn."""

    ROLE_INVERSION = "role_inversion"  # plays the assistant: offers help, solves the task
    LEAKAGE = "leakage"  # states more of the goal than was asked
    REPETITION = "repetition"  # says again what it said, or what the assistant said
    RESTART = "restart"  # opens the conversation anew
    EMPTY = "empty"  # nothing, punctuation only, or the leftovers of a format
    INVENTED = "invented"  # states a value for a slot that the goal contradicts
    LANGUAGE = "language"  # speaks another language than it should


@dataclass(frozen=True)
class Finding:
    """One thing wrong with a turn.

    Attributes:
        drift: Which.
        reason: What to tell the user's model, in one sentence in the second person.
    """

    drift: Drift
    reason: str


def find_drift(
    task: Task, conversation: Conversation, text: str, language: str = "en"
) -> tuple[Finding, ...]:
    """Return what is wrong with `text` as the user's next turn.

    Args:
        conversation: What came before; ends with an assistant turn, or has no user turn yet.
        text: The turn.
        language: ISO 639-1 code of what the user should speak.
    """
    if is_empty(text):
        reason = "You said nothing a person would say; write plain words and no format."
        return (Finding(Drift.EMPTY, reason),)
    return (
        *_role_inversion(task, conversation, text),
        *_leakage(task, conversation, text, language),
        *_repetition(task, conversation, text),
        *_invented(task, text),
        *_language(text, language),
    )


def _role_inversion(task: Task, conversation: Conversation, text: str) -> Iterator[Finding]:
    if offers_help(text):
        reason = "You offered help or a plan, but you are the one who asks for help."
    elif gives_advice(text):
        reason = "You gave advice or instructions, but you are the one who needs them."
    elif answers_task(task, conversation, text):
        reason = "You worked out the answer yourself, but you do not know it and came to ask."
    else:
        return
    yield Finding(Drift.ROLE_INVERSION, reason)


def _leakage(task: Task, conversation: Conversation, text: str, language: str) -> Iterator[Finding]:
    last = conversation.last
    # Questions are read in English: in another language, what was asked for is not known.
    if language != "en" and last is not None and "?" in last.content:
        return
    facts = leaked(task, conversation, text)
    if facts:
        slots = ", ".join(fact.slot for fact in facts)
        yield Finding(
            Drift.LEAKAGE, f"You told more than you were asked for ({slots}); keep it for later."
        )
    elif tells_all(task, conversation, text):
        reason = "You told all you want at once; begin vaguely and keep the details for later."
        yield Finding(Drift.LEAKAGE, reason)


def _repetition(task: Task, conversation: Conversation, text: str) -> Iterator[Finding]:
    if begins_anew(task, conversation, text):
        reason = "You opened the conversation again; you are in the middle of it, so go on."
        yield Finding(Drift.RESTART, reason)
        return
    whose = says_again(conversation, text)
    if whose == "assistant":
        yield Finding(Drift.REPETITION, "You repeated the assistant; answer in your own words.")
    elif whose == "user":
        yield Finding(Drift.REPETITION, "You said the same before; say what is new.")


def _invented(task: Task, text: str) -> Iterator[Finding]:
    for fact, wrong in invented(task, text):
        yield Finding(
            Drift.INVENTED,
            f"You said {wrong!r} for your {fact.slot}, but what you want is {fact.value!r}.",
        )


def _language(text: str, language: str) -> Iterator[Finding]:
    other = other_language(text, language)
    if other:
        wanted = NAMES.get(language, language)
        yield Finding(Drift.LANGUAGE, f"You wrote in {other}, but you speak {wanted} only.")
