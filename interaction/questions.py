"""What an assistant turn asks for.

Promises: a question is a sentence with a question mark or a plain request ("please tell me
..."); it asks for a slot if it mentions one of the slot's phrases. Pure and deterministic.
Knows nothing of who answers or what it is worth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from interaction.wording import mentions_any, sentences

_REQUESTS = (
    "tell me",
    "let me know",
    "please share",
    "please provide",
    "please specify",
    "could you share",
    "can you share",
)
_OPEN = (
    "anything else",
    "tell me more",
    "know more",
    "more about",
    "more detail",
    "more information",
    "any preference",
    "any specific preference",
    "any other",
    "any requirement",
    "what else",
    "in mind",
    "what are you looking for",
    "what would you like",
    "what do you need",
    "what do you want",
    "how can i help",
    "how can i assist",
)


@dataclass(frozen=True)
class Question:
    """One question of a turn.

    Attributes:
        text: The sentence.
        slots: The slots it asks for, in the order of the slots' own list.
        is_open: It asks for whatever the user wants to say.
    """

    text: str
    slots: tuple[str, ...]
    is_open: bool


def questions_in(text: str, phrases: Mapping[str, Sequence[str]]) -> tuple[Question, ...]:
    """Return the questions of a turn.

    Args:
        text: What the assistant said.
        phrases: For each slot, what a question mentions that asks for it.
    """
    return tuple(
        Question(
            text=sentence,
            slots=tuple(slot for slot, asks in phrases.items() if mentions_any(sentence, asks)),
            is_open=mentions_any(sentence, _OPEN),
        )
        for sentence in sentences(text)
        if _is_question(sentence)
    )


def _is_question(sentence: str) -> bool:
    return "?" in sentence or mentions_any(sentence, _REQUESTS)
