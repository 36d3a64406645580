"""How a simulated user behaves, whatever the goal: patience, wording, generosity.

Promises: read from personas.yaml and checked once; sampled by seed alone, so that every reply
to a prompt meets the same person. Knows nothing of tasks.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from interaction.seeds import derive_random, person_seed

_FILE = Path(__file__).with_name("personas.yaml")
_RULE_MADE = 6  # how many of the file's first personas users made of rules draw from


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
        knowledge: What they know of the subject, in a phrase for a language model.
        style: How they write, likewise.
        language: ISO 639-1 code of what they speak.
        mistakes: What they tend to get wrong, likewise.
    """

    name: str
    patience: int
    terse: bool
    typo_rate: float
    volunteers: float
    answers_per_turn: int
    knowledge: str = ""
    style: str = ""
    language: str = "en"
    mistakes: str = ""


def read_personas(path: str | Path) -> tuple[Persona, ...]:
    """Return the personas of a YAML file, in its order.

    Raises:
        ValueError: If it cannot be read or a persona is not right; names persona and key.
    """
    try:
        rows = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"{path}: cannot be read: {error}") from error
    if not isinstance(rows, list) or not rows:
        raise ValueError(f"{path}: expected a list of personas")
    personas = tuple(_persona(row, f"{path}: persona {n}") for n, row in enumerate(rows, 1))
    names = [persona.name for persona in personas]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{path}: persona {name!r}: key 'name' is taken twice")
    return personas


def _persona(row: Any, where: str) -> Persona:
    if not isinstance(row, dict):
        raise ValueError(f"{where}: expected a mapping, got {type(row).__name__}")
    where = f"{where} ({row.get('name')})"
    keys = [field.name for field in fields(Persona)]
    for key in row:
        if key not in keys:
            raise ValueError(f"{where}: unknown key {key!r}; there are: {', '.join(keys)}")
    for key in keys:
        if key not in row:
            raise ValueError(f"{where}: key {key!r} is missing")
        _check(key, row[key], where)
    return Persona(**row)


def _check(key: str, value: object, where: str) -> None:
    """Check one value.

    Raises:
        ValueError: If it is of another kind or out of range.
    """
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if key == "terse":
        fits, wanted = isinstance(value, bool), "true or false"
    elif key in ("patience", "answers_per_turn"):
        fits, wanted = number and isinstance(value, int) and value >= 1, "a whole number from 1"
    elif key in ("typo_rate", "volunteers"):
        fits = number and 0 <= value <= 1  # type: ignore[operator]
        wanted = "a number from 0 to 1"
    elif key == "language":
        fits = isinstance(value, str) and len(value) == 2 and value.isalpha() and value.islower()
        wanted = "a code of two letters such as en"
    else:
        fits, wanted = isinstance(value, str) and bool(value.strip()), "a text"
    if not fits:
        raise ValueError(f"{where}: key {key!r} must be {wanted}, got {value!r}")


@lru_cache(maxsize=1)
def all_personas() -> tuple[Persona, ...]:
    """Return every persona of the project's own file, for users played by a language model."""
    return read_personas(_FILE)


PERSONAS = all_personas()[:_RULE_MADE]


def choose_personas(
    names: Sequence[str] | None, *, languages: Collection[str] | None = ("en",)
) -> tuple[Persona, ...]:
    """Return the personas of these names; the six rule-made ones if there are no names.

    Args:
        languages: What the user can speak; None for any. Users made of rules speak English.

    Raises:
        ValueError: If one does not exist or speaks another language.
    """
    if not names:
        return PERSONAS
    known = {persona.name: persona for persona in all_personas()}
    for name in names:
        if name not in known:
            raise ValueError(f"unknown persona {name!r}; there are: {', '.join(known)}")
        if languages is not None and known[name].language not in languages:
            raise ValueError(
                f"persona {name!r} speaks {known[name].language!r}; this user speaks only "
                f"{', '.join(languages)}: choose another or a user played by a language model"
            )
    return tuple(known[name] for name in names)


def sample_persona(seed: int, personas: Sequence[Persona] = PERSONAS) -> Persona:
    """Return the persona of a seed: the same for every try at a turn."""
    return derive_random(person_seed(seed), "persona").choice(personas)
