"""R* and MR: the arithmetic of arXiv 2502.00640, Eq. 1-4, and what must hold of it."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from interaction.conversation import Conversation
from interaction.task import Goal, Task
from recipe.collabllm.record import FutureRecord, ReplyRecord
from recipe.collabllm.scoring import ReplyScorer
from recipe.collabllm.settings import read_settings
from reward.metric import MetricContext, count_words
from reward.metrics.token_amount import TokenAmount
from reward.multiturn_reward import (
    NoValidFuture,
    conversation_reward,
    multiturn_reward,
    reply_floor,
    saturated_share,
    saturation_warnings,
)
from reward.registry import _METRICS, make_metric
from reward.score import score_conversation
from tests.conftest import PROJECT
from tests.recipe.collabllm.conftest import raw_settings, record

WEIGHTS = {"accuracy": 1.0, "token_amount": 0.5}
THREE = {**WEIGHTS, "bleu": 0.3}
METRICS = {name: make_metric(name) for name in WEIGHTS}
TASK = Task("t", "x", Goal("g"))
scores = st.fixed_dictionaries({"accuracy": st.floats(0, 1), "token_amount": st.floats(-1, 0)})
futures_scores = st.lists(scores, min_size=1, max_size=9)
three_scores = st.fixed_dictionaries(
    {"accuracy": st.floats(0, 1), "token_amount": st.floats(-1, 0), "bleu": st.floats(0, 1)}
)


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


def test_with_weights_of_one_r_star_is_the_papers_sum() -> None:
    extrinsic, tokens, judged = 1.0, 400, 0.75
    found = {
        "accuracy": extrinsic,
        "interactivity": judged,
        "token_amount": -min(5e-4 * tokens, 1),
    }
    weights = dict.fromkeys(found, 1.0)
    assert conversation_reward(found, weights) == extrinsic + (-min(5e-4 * 400, 1) + judged)


@given(futures_scores)
def test_r_star_stays_within_the_bounds_of_the_weights_and_mr_within_its_futures(
    futures: list[dict[str, float]],
) -> None:
    reward = multiturn_reward(futures, WEIGHTS)
    rewards = [conversation_reward(s, WEIGHTS) for s in futures]
    assert all(-0.5 <= r <= 1 for r in rewards)
    assert min(rewards) <= reward.value <= max(rewards)
    assert reward.n_valid == len(futures)


@given(st.lists(three_scores, min_size=1, max_size=9), st.randoms(use_true_random=False))
def test_the_order_of_futures_and_of_metrics_changes_no_bit(
    futures: list[dict[str, float]], random: Random
) -> None:
    shuffled = random.sample(futures, len(futures))
    turned = dict(reversed(THREE.items()))
    assert multiturn_reward(futures, THREE) == multiturn_reward(shuffled, turned)


@given(futures_scores, futures_scores)
def test_every_future_counts_the_same(
    some: list[dict[str, float]], others: list[dict[str, float]]
) -> None:
    def mr(futures: list[dict[str, float]]) -> float:
        return multiturn_reward(futures, WEIGHTS).value

    n, m = len(some), len(others)
    assert mr(some + others) == pytest.approx((n * mr(some) + m * mr(others)) / (n + m), abs=1e-12)


def test_the_cap_is_each_conversations_own_not_the_means() -> None:
    costs = [score_tokens(1500, 1e-3), score_tokens(100, 1e-3)]
    reward = multiturn_reward([{"token_amount": cost} for cost in costs], {"token_amount": 1.0})
    assert reward.value == (-1 - 0.1) / 2  # the mean of 800 tokens would cost 0.8


def score_tokens(tokens: int, lam: float) -> float:
    talk = Conversation().add("user", "Go on.").add("assistant", "word " * tokens)
    return asyncio.run(TokenAmount(lam).score(TASK, talk, MetricContext(given=1)))


@settings(deadline=None)
@given(st.integers(1, 300), st.integers(1, 300), st.sampled_from([1e-4, 5e-4, 0.01, 0.3]))
def test_more_tokens_never_pay_and_cost_strictly_more_below_the_cap(
    tokens: int, more: int, lam: float
) -> None:
    short, long = score_tokens(tokens, lam), score_tokens(tokens + more, lam)
    assert -1 <= long <= short < 0
    assert long < short or short == -1
    futures = [{"accuracy": 1.0, "token_amount": cost} for cost in (short, long)]
    assert conversation_reward(futures[1], WEIGHTS) <= conversation_reward(futures[0], WEIGHTS)


TALKS = st.lists(
    st.sampled_from(["Which city?", "How many days?", "Fine.", "word " * 30]), max_size=4
)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(TALKS.filter(lambda talk: len(talk) % 2 == 0), max_size=4),
    st.lists(st.integers(0, 4), max_size=4),
)
def test_failed_futures_change_nothing_wherever_they_stand(
    talks: list[list[str]], places: list[int]
) -> None:
    roles = ("user", "assistant")
    valid = [
        FutureRecord(
            k,
            1,
            2,
            messages=[{"role": roles[i % 2], "content": text} for i, text in enumerate(talk)],
            stop="window",
        )
        for k, talk in enumerate(talks)
    ]
    mixed = list(valid)
    for place in places:
        mixed.insert(place, FutureRecord(9, 1, 2).failed("user: down"))
    alone, among = score_reply(valid), score_reply(mixed)
    assert (alone.mr, alone.outcome, alone.n_valid) == (among.mr, among.outcome, among.n_valid)
    assert (among.mr is None) == (not valid)


@lru_cache(maxsize=1)
def reply_scorer() -> ReplyScorer:
    metrics = {"interactivity_rule": {"weight": 1.0}, "token_amount": {"weight": 0.25, "lam": 0.01}}
    return ReplyScorer(read_settings(raw_settings(metrics=metrics)), count_words)


def score_reply(futures: list[FutureRecord]) -> ReplyRecord:
    return asyncio.run(reply_scorer().score(TASK, record(futures=futures, outcome=None, mr=None)))


def test_no_future_is_no_number() -> None:
    with pytest.raises(NoValidFuture):
        multiturn_reward([], WEIGHTS)


def test_a_missing_score_is_an_error_and_not_zero() -> None:
    with pytest.raises(KeyError):
        multiturn_reward([{"accuracy": 1.0}], WEIGHTS)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_score_that_is_no_number_cannot_pass_for_a_reward(bad: float) -> None:
    with pytest.raises(ValueError, match="is (nan|inf|-inf)"):
        multiturn_reward([{"accuracy": bad, "token_amount": 0.0}], WEIGHTS)


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


@pytest.mark.parametrize("margin", [0.0, -0.1, float("nan")])
def test_a_floor_without_margin_is_refused(margin: float) -> None:
    with pytest.raises(ValueError, match="margin must be positive"):
        reply_floor({}, {}, margin)


class TestSaturation:
    def test_the_share_at_the_cap_is_told_of_costs_only(self) -> None:
        futures = [{"accuracy": 0.0, "token_amount": cost} for cost in (-1.0, -0.999, -1.0, -0.2)]
        metrics = {**METRICS, "either_way": Ranged((-1.0, 1.0))}
        futures = [{**scores, "either_way": -1.0} for scores in futures]
        assert saturated_share(futures, metrics) == {"token_amount": 0.5}

    def test_without_conversations_there_is_no_share(self) -> None:
        assert saturated_share([], METRICS) == {}

    def test_a_cap_reached_by_real_conversations_is_seen(self) -> None:
        futures = [{"token_amount": score_tokens(tokens, 0.01)} for tokens in (99, 100, 101)]
        metrics = {"token_amount": TokenAmount(0.01)}
        assert saturated_share(futures, metrics) == {"token_amount": pytest.approx(2 / 3)}

    def test_more_than_a_tenth_is_warned_of_with_the_remedy(self) -> None:
        told = saturation_warnings({"token_amount": 0.11, "turn_amount": 0.1})
        assert list(told) == ["token_amount"]
        assert "11%" in told["token_amount"]
        assert "lower collabllm.metrics.token_amount.lam" in told["token_amount"]


def test_the_metric_of_the_docs_is_one_that_scores() -> None:
    """docs/reward.md, "In Python": the block that registers a class."""
    text = (PROJECT / "docs" / "reward.md").read_text(encoding="utf-8")
    (block,) = (
        code for code in re.findall(r"```python\n(.*?)```", text, re.S) if "@register" in code
    )
    names: dict[str, Any] = {}
    exec(block, names)
    try:
        talk = Conversation().add("user", "Go on.").add("assistant", "word " * 50)
        context = MetricContext(given=1)
        assert asyncio.run(make_metric("brevity").score(TASK, talk, context)) == 1
        assert asyncio.run(make_metric("brevity", {"words": 49}).score(TASK, talk, context)) == 0
    finally:
        del _METRICS["brevity"]


class TestWorkedExampleOfTheDocs:
    """docs/reward.md, "A worked example", recomputed from its text."""

    TEXT = (PROJECT / "docs" / "reward.md").read_text(encoding="utf-8")
    SECTION = TEXT.split("## A worked example")[1].split("\n## ")[0]
    ROW = re.compile(
        r'\| (\d+) \| "([^"]+)" \| "([^"]+)" \| (\S+) \| (\S+) \| (\S+) \| (\d+) \| (\S+) \|'
        r" (.+) = (\S+) \|"
    )
    ROWS = ROW.findall(SECTION)

    @property
    def chosen(self) -> dict[str, dict[str, Any]]:
        block = re.search(r"```yaml\n(.*?)```", self.SECTION, re.S)
        assert block
        chosen: dict[str, dict[str, Any]] = yaml.safe_load(block[1])
        return chosen

    @pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
    def test_the_metrics_give_each_future_what_it_says(
        self, row: tuple[str, ...], trip: Task
    ) -> None:
        _, user, policy, *cells, _, told = row
        talk = self.reply.add("user", user).add("assistant", policy)
        weights, metrics = self.made()
        found = asyncio.run(score_conversation(trip, talk, metrics, MetricContext(given=1)))
        elicited, coverage, asks, words, cost = map(Fraction, cells[:5])
        assert list(found.values()) == pytest.approx(
            list(map(float, (elicited, coverage, asks, cost)))
        )
        assert words == sum(count_words(text) for text in talk.said_by("assistant"))
        assert conversation_reward(found, weights) == pytest.approx(float(told), abs=5e-5)
        assert eval(row[8].replace("·", "*")) == pytest.approx(float(told), abs=5e-5)

    def test_mr_and_floor_are_what_it_says(self) -> None:
        assert len(self.ROWS) == 2
        (mr,) = re.findall(r"MR = .* = (\d+\.\d+)", self.SECTION)
        (floor,) = re.findall(r"floor .* = (-\d+\.\d+)", self.SECTION)
        weights, metrics = self.made()
        rewards = [{"R*": float(row[-1])} for row in self.ROWS]
        assert multiturn_reward(rewards, {"R*": 1.0}).value == pytest.approx(float(mr), abs=5e-5)
        assert reply_floor(metrics, weights, 0.1) == pytest.approx(float(floor))

    def test_its_metrics_are_those_of_the_task(self) -> None:
        config = PROJECT / "recipe" / "collabllm" / "config"
        planning = yaml.safe_load((config / "metrics" / "planning.yaml").read_text())
        assert self.chosen == planning

    @property
    def reply(self) -> Conversation:
        (said,) = re.findall(r'replies "([^"]+)"', self.SECTION)
        return Conversation().add("user", "I want to go on a trip.").add("assistant", said)

    def made(self) -> tuple[dict[str, float], dict[str, Any]]:
        weights = {name: options["weight"] for name, options in self.chosen.items()}
        options = {n: {k: v for k, v in o.items() if k != "weight"} for n, o in self.chosen.items()}
        return weights, {name: make_metric(name, options[name]) for name in weights}
