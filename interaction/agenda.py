"""Where a conversation stands against the user's goal, read from its text alone.

Promises: pure; the same reading serves the user who speaks and the metrics that score, so
they never disagree about what was told, asked or due.
Knows nothing of personas, phrasing or weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from interaction.conversation import Message
from interaction.questions import Question, questions_in
from interaction.task import Fact, Goal
from interaction.wording import mentions, mentions_any, mentions_half, sentences

CLOSINGS = (
    "That's everything. What do you suggest?",
    "That is all. What do you suggest?",
    "That's all I know. What would you recommend?",
)


@dataclass(frozen=True)
class Standing:
    """What has been said so far.

    Attributes:
        told: Facts that the user has told.
        missing: Facts that the user has not told.
        asked: Slots that the assistant has asked for, the indifferent ones included.
        closed: The user has said that nothing is to be added.
        fruitless: Assistant turns that the user answered without telling anything new.
    """

    told: tuple[Fact, ...]
    missing: tuple[Fact, ...]
    asked: frozenset[str]
    closed: bool
    fruitless: int

    @property
    def answer_due(self) -> bool:
        """Return whether the assistant's next turn should be the answer, not a question."""
        return self.closed or not self.missing


def asking_phrases(goal: Goal) -> dict[str, tuple[str, ...]]:
    """Return for every slot of a goal what a question mentions that asks for it."""
    asks = {fact.slot: (fact.slot, *fact.phrases) for fact in goal.facts}
    asks |= {slot: (slot, *phrases) for slot, phrases in goal.indifferent.items()}
    return asks


def stand(goal: Goal, messages: Sequence[Message]) -> Standing:
    """Read where a conversation stands after `messages`."""
    told: dict[str, Fact] = {}
    asked: set[str] = set()
    closed = False
    fruitless = 0
    asking = asking_phrases(goal)
    before: Message | None = None
    for message in messages:
        if message.role == "assistant":
            asked.update(slot for q in questions_in(message.content, asking) for slot in q.slots)
        elif message.role == "user":
            new = [f for f in goal.facts if f.slot not in told and is_told(f, message.content)]
            if before is not None and before.role == "assistant" and not new:
                fruitless += 1
            told.update((fact.slot, fact) for fact in new)
            closed = closed or mentions_any(message.content, CLOSINGS)
        before = message
    return Standing(
        told=tuple(told.values()),
        missing=tuple(fact for fact in goal.facts if fact.slot not in told),
        asked=frozenset(asked),
        closed=closed,
        fruitless=fruitless,
    )


def is_told(fact: Fact, text: str) -> bool:
    """Return whether a user's text tells a fact."""
    return mentions(text, fact.value)


def respects(fact: Fact, text: str) -> bool:
    """Return whether an assistant's text takes a fact into account.

    Nobody repeats a user word for word, so half of the value's content words are enough.
    """
    return mentions_half(text, fact.value) or mentions_any(text, fact.accepted)


def questions_for(goal: Goal, text: str) -> tuple[Question, ...]:
    """Return the questions of an assistant turn with the goal's slots they ask for."""
    return questions_in(text, asking_phrases(goal))


def wrong_assumptions(facts: Sequence[Fact], text: str) -> tuple[Fact, ...]:
    """Return the facts of which `text` states another value, questions left aside."""
    stated = " \n".join(s for s in sentences(text) if "?" not in s)
    return tuple(
        fact
        for fact in facts
        if mentions_any(stated, fact.alternatives) and not respects(fact, stated)
    )
