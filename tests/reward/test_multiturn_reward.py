"""R* and MR: the arithmetic of arXiv 2502.00640, Eq. 1-4."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interaction.conversation import Conversation
from interaction.task import Task
from reward.metric import MetricContext
from reward.multiturn_reward import (
    NoValidFuture,
    conversation_reward,
    multiturn_reward,
    reply_floor,
)

WEIGHTS = {"accuracy": 1.0, "token_amount": 0.5}
scores = st.fixed_dictionaries({"accuracy": st.floats(0, 1), "token_amount": st.floats(-1, 0)})


@dataclass(frozen=True)
class Ranged:
    """A metric of which only the range matters."""

    range: tuple[float, float]

    async def score(self, task: Task, conversation: Conversation, context: MetricContext) -> float:
        return self.range[0]


def test_mr_is_the_mean_of_the_conversations_rewards() -> None:
    futures = [
        {"accuracy": 1.0, "token_amount": -0.2},
        {"accuracy": 0.0, "token_amount": -1.0},
        {"accuracy": 1.0, "token_amount": -0.4},
    ]
    reward = multiturn_reward(futures, WEIGHTS)
    assert reward.value == pytest.approx((0.9 - 0.5 + 0.8) / 3)
    assert reward.n_valid == 3
    assert reward.per_metric == pytest.approx({"accuracy": 2 / 3, "token_amount": -1.6 / 3})
    assert reward.variance == pytest.approx(
        sum((r - reward.value) ** 2 for r in (0.9, -0.5, 0.8)) / 3
    )


@given(st.lists(scores, min_size=1, max_size=9))
def test_any_number_of_futures_stays_within_the_weights_bounds(
    futures: list[dict[str, float]],
) -> None:
    reward = multiturn_reward(futures, WEIGHTS)
    assert -0.5 - 1e-9 <= reward.value <= 1 + 1e-9
    assert reward.n_valid == len(futures)
    rewards = [conversation_reward(s, WEIGHTS) for s in futures]
    assert min(rewards) - 1e-9 <= reward.value <= max(rewards) + 1e-9


@given(st.lists(scores, min_size=1, max_size=6), st.randoms())
def test_the_order_of_futures_does_not_matter(
    futures: list[dict[str, float]], random: object
) -> None:
    shuffled = list(futures)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert math.isclose(
        multiturn_reward(futures, WEIGHTS).value,
        multiturn_reward(shuffled, WEIGHTS).value,
        abs_tol=1e-12,
    )


def test_no_future_is_no_number() -> None:
    with pytest.raises(NoValidFuture):
        multiturn_reward([], WEIGHTS)


def test_a_missing_score_is_an_error_and_not_zero() -> None:
    with pytest.raises(KeyError):
        multiturn_reward([{"accuracy": 1.0}], WEIGHTS)


bounds = st.tuples(st.floats(-5, 5), st.floats(-5, 5)).map(lambda b: (min(b), max(b)))


@given(
    st.lists(st.tuples(bounds, st.floats(-3, 3), st.floats(0, 1)), min_size=1, max_size=5),
    st.floats(1e-3, 1),
)
def test_the_floor_is_below_every_reward_that_can_be(
    parts: list[tuple[tuple[float, float], float, float]], margin: float
) -> None:
    metrics = {str(i): Ranged(bound) for i, (bound, _, _) in enumerate(parts)}
    weights = {str(i): weight for i, (_, weight, _) in enumerate(parts)}
    attained = {
        str(i): low + where * (high - low) for i, ((low, high), _, where) in enumerate(parts)
    }
    assert reply_floor(metrics, weights, margin) < conversation_reward(attained, weights)


def test_a_floor_without_margin_is_refused() -> None:
    with pytest.raises(ValueError, match="margin must be positive"):
        reply_floor({}, {}, 0.0)


def test_the_worked_example_of_the_docs() -> None:
    """docs/reward.md, section "A worked example"."""
    weights = {
        "goal_elicited": 1.0,
        "goal_coverage": 1.0,
        "interactivity_rule": 1.0,
        "token_amount": 0.25,
    }
    futures = [
        {"goal_elicited": 0.5, "goal_coverage": 0.0, "interactivity_rule": 1.0, "token_amount": -0.2},
        {"goal_elicited": 0.25, "goal_coverage": 0.0, "interactivity_rule": 0.625, "token_amount": -0.3},
    ]
    assert conversation_reward(futures[0], weights) == pytest.approx(1.45)
    assert conversation_reward(futures[1], weights) == pytest.approx(0.80)
    assert multiturn_reward(futures, weights).value == pytest.approx(1.125)
    metrics = {name: Ranged((0.0, 1.0)) for name in weights} | {"token_amount": Ranged((-1.0, 0.0))}
    assert reply_floor(metrics, weights, 0.1) == pytest.approx(-0.35)
    text = Path("docs/reward.md").read_text(encoding="utf-8")
    assert "= 1.45" in text and "= 0.80" in text and "1.125" in text and "-0.35" in text
