"""Several conversations in one call, and what their order does to the scores."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interaction.conversation import Conversation
from interaction.task import Task
from reward.judge.group import group_verdicts
from reward.judge.judge import Judge
from reward.judge.order_bias import balanced_orders, order_bias
from reward.judge.order_effect import OrderBias, measured
from reward.judge.question import JudgeFailed, Verdict
from tests.reward.judge.judge_server import (
    CLARITY,
    QUESTIONS,
    TACT,
    judge_at,
    judged_by,
    score_of,
    side_by_side,
)
from tests.serving.fault_server import Step, fault_server, says

START = Conversation().add("user", "How many pens?")
FUTURES = [START.add("assistant", f"Plan {i}. How many boxes?") for i in range(4)]


def verdicts(
    judge: Judge, task: Task, futures: list[Conversation] = FUTURES, **settings: Any
) -> list[Verdict]:
    async def run() -> list[Verdict]:
        members = group_verdicts(judge, task, futures, QUESTIONS, given=1, **settings)
        return list(await asyncio.gather(*(member.of(TACT) for member in members)))

    return asyncio.run(run())


def bias(limits: Path, task: Task, *steps: Step, rounds: int = 12) -> OrderBias:
    with fault_server(*steps) as server:
        judge = judge_at(server, limits, attempts=1)
        return asyncio.run(order_bias(judge, task, FUTURES, [TACT], rounds=rounds, given=1, seed=1))


def test_one_call_gives_each_conversation_its_own_verdict(limits: Path, sum_task: Task) -> None:
    with judged_by(side_by_side(4), limits) as (judge, server):
        for seed in range(3):
            given = [verdict["tact"] for verdict in verdicts(judge, sum_task, seed=seed)]
            assert given == [pytest.approx(0.7 * score_of("tact", future)) for future in FUTURES]
        assert len(server.log.bodies) == 3


def test_the_order_is_drawn_by_seed(limits: Path, sum_task: Task) -> None:
    def first_shown(seed: int) -> str:
        verdicts(judge, sum_task, seed=seed)
        text: str = server.log.bodies[-1]["messages"][-1]["content"]
        return text.split("<conversation_1")[1].split("Plan ")[1][0]

    with judged_by(side_by_side(4), limits) as (judge, server):
        firsts = [first_shown(seed) for seed in range(8)]
        assert len(set(firsts)) > 1 and first_shown(3) == firsts[3]


def test_what_all_share_is_shown_once(limits: Path, sum_task: Task) -> None:
    with judged_by(side_by_side(4), limits) as (judge, server):
        verdicts(judge, sum_task)
        assert server.log.bodies[0]["messages"][-1]["content"].count('"How many pens?"') == 1


def test_members_share_what_the_call_cost(limits: Path, sum_task: Task) -> None:
    async def run(judge: Judge) -> float:
        members = group_verdicts(judge, sum_task, FUTURES, [CLARITY], given=1)
        await members[0].of(CLARITY)
        return sum(member.usage["prompt_tokens"] for member in members)

    with judged_by(side_by_side(4), limits) as (judge, _):
        assert asyncio.run(run(judge)) == pytest.approx(10)


@pytest.mark.parametrize(
    ("futures", "order", "reason"),
    [
        ([FUTURES[0], Conversation().add("user", "Hi").add("assistant", "a")], None, "differ"),
        (FUTURES, [0, 1, 2], "no order"),
        (FUTURES, [0, 1, 2, 2], "no order"),
    ],
)
def test_a_group_that_is_none_is_refused(
    limits: Path, sum_task: Task, futures: list[Conversation], order: list[int] | None, reason: str
) -> None:
    with judged_by(side_by_side(4), limits) as (judge, _), pytest.raises(ValueError, match=reason):
        verdicts(judge, sum_task, futures, order=order)


class TestOrderBias:
    def test_a_judge_who_likes_the_first_place_is_found_out(
        self, limits: Path, sum_task: Task
    ) -> None:
        found = bias(limits, sum_task, side_by_side(4, {1: 0.3}))
        first, *others = found.places
        assert found.biased and first.low > found.mean
        assert found.spread == pytest.approx(0.3, abs=0.05)
        assert all(place.high < first.low for place in others)
        assert found.flips > 0

    def test_a_judge_who_does_not_is_not(self, limits: Path, sum_task: Task) -> None:
        found = bias(limits, sum_task, side_by_side(4))
        assert not found.biased and found.spread == pytest.approx(0) and found.flips == 0
        assert found.rounds == 12 and found.failed == 0

    def test_a_round_without_verdicts_is_left_out(self, limits: Path, sum_task: Task) -> None:
        found = bias(limits, sum_task, says("no"), side_by_side(4), rounds=5)
        assert (found.rounds, found.failed) == (4, 1) and not found.biased

    def test_without_verdicts_there_is_no_measure(self, limits: Path, sum_task: Task) -> None:
        with pytest.raises(JudgeFailed, match="fewer than two orders"):
            bias(limits, sum_task, says("no"))

    @pytest.mark.parametrize(("futures", "rounds"), [(FUTURES[:1], 4), (FUTURES, 1)])
    def test_too_little_to_compare_is_refused(
        self, limits: Path, sum_task: Task, futures: list[Conversation], rounds: int
    ) -> None:
        with (
            judged_by(side_by_side(4), limits) as (judge, _),
            pytest.raises(ValueError, match="two"),
        ):
            asyncio.run(order_bias(judge, sum_task, futures, [TACT], rounds=rounds))

    def test_noise_is_mostly_no_bias(self) -> None:
        orders = list(balanced_orders(4, 24, 0))
        rng = np.random.default_rng(0)
        found = [measured(rng.uniform(0, 1, (24, 4)), orders, seed) for seed in range(40)]
        assert sum(one.biased for one in found) < 20  # 5% for each of 4 places, and few rounds
        assert np.mean([one.flips for one in found]) == pytest.approx(0.5, abs=0.05)

    @given(n=st.integers(2, 7), turns=st.integers(1, 3), seed=st.integers(0, 99))
    def test_everybody_is_in_every_place_equally_often(self, n: int, turns: int, seed: int) -> None:
        for place in np.array(list(balanced_orders(n, n * turns, seed))).T:
            assert np.bincount(place, minlength=n).tolist() == [turns] * n

    @given(
        quality=st.lists(st.floats(0, 0.5), min_size=3, max_size=3),
        favour=st.floats(-0.4, 0.4),
    )
    def test_a_planted_bias_is_measured_whatever_the_qualities(
        self, quality: list[float], favour: float
    ) -> None:
        orders = list(balanced_orders(3, 6, 0))
        scores = np.array([[quality[c] + favour * (o[0] == c) for c in range(3)] for o in orders])
        assert measured(scores, orders).spread == pytest.approx(abs(favour))


def test_flips_count_disagreements_between_orders() -> None:
    scores = np.array([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.5, 0.5]])
    found: Mapping[str, float] = vars(measured(scores, [[0, 1]] * 4))
    assert found["flips"] == pytest.approx(2 / 6)
