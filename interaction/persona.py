"""How a simulated user behaves, whatever the goal: patience, wording, generosity.

Promises: sampled by seed alone, so that every reply to a prompt meets the same person.
Knows nothing of tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from interaction.seeds import derive_random


@dataclass(frozen=True)
class Persona:
    """One kind of user.

    Attributes:
        name: What reports call it.
        patience: Fruitless assistant turns this user puts up with; the next ends it.
        terse: Gives bare values instead of sentences.
        typo_rate: Share of ordinary words with two letters swapped; facts stay readable.
        volunteers: Probability to add a fact that was not asked for.
        answers_per_turn: Most facts told in answer to one turn.
    """

    name: str
    patience: int
    terse: bool
    typo_rate: float
    volunteers: float
    answers_per_turn: int


PERSONAS = (
    Persona("plain", patience=2, terse=False, typo_rate=0.0, volunteers=0.1, answers_per_turn=2),
    Persona("terse", patience=2, terse=True, typo_rate=0.0, volunteers=0.0, answers_per_turn=1),
    Persona("chatty", patience=3, terse=False, typo_rate=0.02, volunteers=0.4, answers_per_turn=3),
    Persona("hasty", patience=1, terse=True, typo_rate=0.08, volunteers=0.1, answers_per_turn=2),
    Persona("patient", patience=4, terse=False, typo_rate=0.0, volunteers=0.2, answers_per_turn=2),
    Persona("sloppy", patience=2, terse=False, typo_rate=0.15, volunteers=0.2, answers_per_turn=2),
)


def choose_personas(names: Sequence[str] | None) -> tuple[Persona, ...]:
    """Return the personas of these names; all of them if there are no names.

    Raises:
        ValueError: If one does not exist.
    """
    known = {persona.name: persona for persona in PERSONAS}
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise ValueError(f"unknown persona {unknown[0]!r}; there are: {', '.join(known)}")
    return tuple(known[name] for name in names) if names else PERSONAS


def sample_persona(seed: int, personas: Sequence[Persona] = PERSONAS) -> Persona:
    """Return the persona of a seed."""
    return derive_random(seed, "persona").choice(personas)
