"""`turn_amount`: which turns cost, and that the cost is bounded."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interaction.conversation import Conversation
from interaction.task import Goal, Task
from reward.metric import Metric, MetricContext
from reward.metrics.turn_amount import TurnAmount
from reward.registry import make_metric


def score(metric: Metric, talk: Conversation, given: int = 0) -> float:
    task = Task("t", "x", Goal("g"))
    return asyncio.run(metric.score(task, talk, MetricContext(given=given)))


def exchanges(count: int) -> Conversation:
    talk = Conversation().add("system", "s").add("user", "prompt")
    for _ in range(count):
        talk = talk.add("assistant", "reply").add("user", "more")
    return talk


def test_only_the_users_turns_after_what_was_given_cost() -> None:
    assert score(TurnAmount(), exchanges(3), given=2) == pytest.approx(-0.3)
    assert score(TurnAmount(), exchanges(3)) == pytest.approx(-0.4)
    assert score(make_metric("turn_amount", {"lam": 0.02}), exchanges(3), 2) == pytest.approx(-0.06)


def test_a_conversation_without_a_user_turn_costs_nothing() -> None:
    assert score(TurnAmount(), exchanges(0).add("assistant", "reply"), given=2) == 0
    assert score(TurnAmount(), Conversation()) == 0


def test_the_cap_is_reached_at_ten_turns() -> None:
    assert score(TurnAmount(), exchanges(10), given=2) == pytest.approx(-1)
    assert score(TurnAmount(), exchanges(30), given=2) == -1


@pytest.mark.parametrize("lam", [0, -0.1, float("nan"), float("inf")])
def test_a_cost_per_turn_that_is_no_cost_is_refused(lam: float) -> None:
    with pytest.raises(ValueError, match="lam must be greater than 0"):
        TurnAmount(lam=lam)


@given(lam=st.floats(1e-9, 1e9), count=st.integers(0, 40), given_=st.integers(0, 5))
def test_any_conversation_is_scored_within_range(lam: float, count: int, given_: int) -> None:
    assert -1 <= score(TurnAmount(lam=lam), exchanges(count), given_) <= 0
