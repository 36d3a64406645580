"""What tests of all packages share: the embedded model, and tasks made by hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from interaction.task import Fact, Goal, Task

# Before torch or transformers are imported anywhere: no test looks anything up on a hub.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# How long an example takes says more about the machine's load than about the code.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")

PROJECT = Path(__file__).parent.parent
SHARED_DATA = PROJECT.parent / "shared" / "data"


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The embedded model's folder, made once and kept between runs."""
    from serving.smollm2 import make_smollm2

    return make_smollm2(PROJECT / "outputs" / "models" / "SmolLM2-135M-Instruct")


def make_fact(slot: str, value: str, *phrases: str, alternatives: tuple[str, ...] = ()) -> Fact:
    """Return a fact whose statement is "I need {value}."."""
    return Fact(slot, value, f"I need {value}.", phrases or (slot,), alternatives=alternatives)


@pytest.fixture
def trip() -> Task:
    """A trip with three facts and one slot that does not matter."""
    return Task(
        task_id="planning/trip/1",
        family="planning",
        goal=Goal(
            summary="A trip to Lisbon for five days with two kids.",
            facts=(
                make_fact(
                    "destination",
                    "to Lisbon",
                    "which city",
                    "where * go",
                    alternatives=("to Paris",),
                ),
                make_fact("length", "five days", "how long", "how many days"),
                make_fact("company", "with two kids", "who is coming", "how many people"),
            ),
            indifferent={"hotel": ("hotel", "accommodation")},
        ),
        metadata={"request": "I want to go on a trip."},
    )
