"""The planning domains: what people ask for, and what they may know about it.

Promises: read from the YAML files beside this one, checked once; training and held-out domains
share no slot. Knows nothing of conversations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Slot:
    """Something a user may have in mind.

    Attributes:
        name: How the user calls it.
        phrases: What a question mentions that asks for it.
        questions: Natural questions that ask for it and nothing else.
        say: How the user states it, with one `{value}`.
        values: What it can be.
    """

    name: str
    phrases: tuple[str, ...]
    questions: tuple[str, ...]
    say: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Domain:
    """Something people plan.

    Attributes:
        name: What it is called.
        requests: Vague openings.
        slots: By name.
    """

    name: str
    requests: tuple[str, ...]
    slots: Mapping[str, Slot]


@lru_cache(maxsize=2)
def load_domains(held_out: bool = False) -> tuple[Domain, ...]:
    """Return the training domains, or those that are never trained on."""
    path = _FOLDER / ("held_out.yaml" if held_out else "train.yaml")
    return tuple(_domain(raw) for raw in yaml.safe_load(path.read_text(encoding="utf-8")))


def _domain(raw: Mapping[str, object]) -> Domain:
    slots: Mapping[str, Mapping[str, object]] = raw["slots"]  # type: ignore[assignment]
    return Domain(
        name=str(raw["name"]),
        requests=tuple(raw["requests"]),  # type: ignore[arg-type]
        slots={name: _slot(name, slot) for name, slot in slots.items()},
    )


def _slot(name: str, raw: Mapping[str, object]) -> Slot:
    return Slot(
        name=name,
        phrases=tuple(raw["phrases"]),  # type: ignore[arg-type]
        questions=tuple(raw["questions"]),  # type: ignore[arg-type]
        say=str(raw["say"]),
        values=tuple(raw["values"]),  # type: ignore[arg-type]
    )
