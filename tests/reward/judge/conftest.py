"""What tests of the judge share."""

from __future__ import annotations

import pytest

from interaction.conversation import Conversation, StopReason
from interaction.task import Fact, Goal, Task


@pytest.fixture
def sum_task() -> Task:
    """A task with a goal and a right answer."""
    fact = Fact("number of boxes", "3", "There are 3 boxes.", ("how many boxes",))
    return Task("math/1", "math", Goal("How many pens are there?", (fact,)), ground_truth="36")


@pytest.fixture
def talk() -> Conversation:
    """A conversation whose first message was given."""
    return (
        Conversation()
        .add("system", "Be helpful.")
        .add("user", "How many pens?")
        .add("assistant", "<think>Boxes?</think>How many boxes?")
        .add("user", "3.")
        .add("assistant", "36 pens.")
        .ended(StopReason.WINDOW)
    )
