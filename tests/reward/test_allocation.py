"""Sharing out futures: who gets them, what it never exceeds, and that it favours nobody."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product
from math import prod
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward.allocation import (
    FuturePlan,
    GroupNoise,
    allocate,
    group_noise,
    share_out,
    staged_mean,
)
from reward.multiturn_reward import NoValidFuture

REWARD = st.floats(-1e6, 1e6)
STAGE_ONE = st.lists(st.none() | st.lists(REWARD, max_size=4), max_size=9)
PLAN = st.builds(
    lambda first, more, spare: FuturePlan(first + more, first, first + more + spare),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(0, 6),
)


class TestAllocate:
    @given(stage_one=STAGE_ONE, budget=st.integers(0, 60), most=st.integers(1, 12))
    def test_the_whole_budget_is_spent_within_everybodys_bounds(
        self, stage_one: list[list[float] | None], budget: int, most: int
    ) -> None:
        counts = allocate(stage_one, budget, most)
        usable = sum(rewards is not None for rewards in stage_one)
        assert sum(counts) == min(max(budget, usable), most * usable)
        for rewards, count in zip(stage_one, counts, strict=True):
            assert count == 0 if rewards is None else 1 <= count <= most

    @given(st.lists(st.floats(0.01, 9), min_size=3, max_size=3), st.integers(3, 9))
    def test_without_shared_users_no_other_way_leaves_the_gaps_less_uncertain(
        self, variances: list[float], budget: int
    ) -> None:
        noise = GroupNoise(tuple(variances), 0.0)
        ways = [way for way in product(range(1, 8), repeat=3) if sum(way) == budget]
        best = min(noise.uncertainty(way) for way in ways)
        assert noise.uncertainty(share_out(noise, budget, 7)) == pytest.approx(best)

    @given(st.lists(st.floats(0.01, 9), min_size=1, max_size=6), st.floats(0, 9), st.integers(1, 5))
    def test_the_gaps_are_never_less_certain_than_with_even_shares(
        self, variances: list[float], shared: float, each: int
    ) -> None:
        noise = GroupNoise(tuple(variances), shared)
        n = len(variances)
        counts = share_out(noise, each * n, 3 * each)
        assert noise.uncertainty(counts) <= noise.uncertainty([each] * n)

    @given(
        st.lists(st.tuples(st.floats(0, 9), st.integers(1, 6)), min_size=2, max_size=5),
        st.floats(0, 9),
        st.sampled_from((-1, 1)),
    )
    def test_a_change_is_the_difference_it_makes(
        self, replies: list[tuple[float, int]], shared: float, step: int
    ) -> None:
        own, counts = zip(*replies, strict=True)
        noise, after = GroupNoise(own, shared), [counts[0] + step, *counts[1:]]
        if after[0]:
            difference = noise.uncertainty(after) - noise.uncertainty(counts)
            assert noise.change(counts, 0, step) == pytest.approx(difference, abs=1e-9)

    def test_what_comes_with_shared_users_is_no_reason_for_uneven_shares(self) -> None:
        noise = GroupNoise((0.1, 0.3, 0.1), 0.0)
        assert len(set(share_out(noise, 12, 9))) > 1
        assert share_out(GroupNoise(noise.own, 3.0), 12, 9) == [4, 4, 4]

    def test_a_reply_that_varies_gets_more_than_those_that_do_not(self) -> None:
        counts = allocate([[0.5, 0.5], [0.0, 1.0], [0.9, 0.9]], 10, 9)
        assert counts[1] > counts[0] == counts[2] >= 1

    def test_replies_equally_uncertain_get_the_same(self) -> None:
        assert allocate([[0.0, 1.0]] * 4, 8, 9) == (2, 2, 2, 2)

    def test_where_no_reply_varies_all_get_the_same(self) -> None:
        assert allocate([[0.1] * 3, [0.7] * 3, [0.3] * 3], 6, 9) == (2, 2, 2)

    def test_one_future_each_tells_nobody_apart(self) -> None:
        assert allocate([[0.0], [1.0], [9.0]], 6, 9) == (2, 2, 2)

    def test_a_tie_goes_to_the_lower_index(self) -> None:
        assert allocate([[0.0, 1.0]] * 3, 5, 9) == (2, 2, 1)

    def test_a_floored_reply_leaves_its_budget_to_the_others(self) -> None:
        assert allocate([[0.0, 1.0], None, [0.0, 1.0]], 6, 9) == (3, 0, 3)

    def test_a_reply_without_a_valid_future_counts_as_uncertain_as_the_group(self) -> None:
        assert group_noise([[], [0.0, 2.0]]).own == pytest.approx((2.0, 2.0))
        assert (
            group_noise([[], [0.5] * 3, [0.0, 2.0]]).own[1]
            < group_noise([[], [0.5] * 3, [0.0, 2.0]]).own[0]
        )

    def test_nothing_is_shared_out_on_a_number_that_is_none(self) -> None:
        with pytest.raises(ValueError, match="finite"):
            allocate([[0.0, float("nan")], [0.0, 1.0]], 4, 4)

    def test_a_cap_below_one_is_refused(self) -> None:
        with pytest.raises(ValueError, match="most=0"):
            allocate([[0.0, 1.0]], 4, 0)


class TestGroupNoise:
    def test_a_difference_between_users_is_told_from_one_between_futures(self) -> None:
        users_only = group_noise([[0.0, 1.0, 0.5], [0.2, 1.2, 0.7], [0.5, 1.5, 1.0]])
        assert max(users_only.own) < 1e-9 and users_only.shared > 0.1
        futures_only = group_noise([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
        assert min(futures_only.own) > 0.3 and futures_only.shared < futures_only.own[0] / 2

    def test_both_parts_are_found_in_large_groups(self) -> None:
        chance = random.Random(1)
        users = [chance.gauss(0, 0.5) for _ in range(100)]
        group = [[user + chance.gauss(0, s) for user in users] for s in (0.0, 0.5, 1.0, 1.0)]
        noise = group_noise(group)
        assert noise.shared == pytest.approx(0.25, rel=0.4)
        assert noise.own[0] < noise.own[1] < noise.own[2] == pytest.approx(1.0, rel=0.4)

    def test_where_a_future_failed_users_are_not_told_apart_from_futures(self) -> None:
        noise = group_noise([[0.0, 1.0, 0.0], [0.0, 1.0]])
        assert noise.shared == pytest.approx((2 / 3 + 1 / 2) / 3)


class TestFuturePlan:
    @given(plan=PLAN, stage_one=STAGE_ONE, absent=st.integers(0, 4))
    def test_a_group_never_costs_more_than_its_budget(
        self, plan: FuturePlan, stage_one: list[list[float] | None], absent: int
    ) -> None:
        shares = plan.shares(stage_one, absent)
        played = sum(plan.first + share for share in shares if share)
        late = (plan.first + 1) * absent
        assert played + late <= plan.mean * (len(stage_one) + absent)
        assert all(plan.first + share <= plan.most for share in shares)

    def test_the_budget_of_floored_replies_is_spent_on_the_others(self) -> None:
        assert FuturePlan(mean=4, first=2, most=12).shares([[0.0, 1.0], None]) == [6, 0]

    def test_a_group_of_one_gets_the_mean(self) -> None:
        assert FuturePlan(mean=4, first=1, most=4).shares([[0.3]]) == [3]

    @pytest.mark.parametrize("mean, first, most", [(4, 0, 8), (4, 4, 8), (4, 2, 3)])
    def test_a_plan_without_a_second_stage_is_refused(
        self, mean: int, first: int, most: int
    ) -> None:
        with pytest.raises(ValueError, match="first < mean <= most"):
            FuturePlan(mean, first, most)


class TestStagedMean:
    def test_stages_are_weighted_not_futures(self) -> None:
        assert staged_mean([0.0, 1.0], [1.0] * 6, 0.5) == pytest.approx(0.75)

    def test_a_stage_that_failed_is_left_to_the_other(self) -> None:
        assert staged_mean([], [0.2, 0.4], 0.5) == pytest.approx(0.3)
        assert staged_mean([0.2, 0.4], [], 0.5) == pytest.approx(0.3)

    def test_no_valid_future_is_no_number(self) -> None:
        with pytest.raises(NoValidFuture):
            staged_mean([], [], 0.5)

    def test_a_weight_is_a_share(self) -> None:
        with pytest.raises(ValueError, match="weight=2"):
            staged_mean([1.0], [1.0], 2)

    @settings(max_examples=8, deadline=None)
    @given(chances=st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)))
    def test_mr_is_exact_in_expectation_whatever_was_shared_out(
        self, chances: tuple[float, float, float]
    ) -> None:
        assert _expected(chances, pooled=False) == pytest.approx(chances)

    def test_a_mean_over_all_futures_would_not_be(self) -> None:
        chances = (0.2, 0.5, 0.8)
        off = _expected(chances, pooled=True)[0] - chances[0]
        assert abs(off) > 0.001


def _expected(chances: Sequence[float], pooled: bool) -> list[float]:
    """Return the replies' expected MR, over all that can happen, where R* is 1 or 0."""
    plan = FuturePlan(mean=6, first=3, most=9)
    expected = [0.0] * len(chances)
    outcomes = list(product((0.0, 1.0), repeat=plan.first))
    for ones in product(outcomes, repeat=len(chances)):
        happens = prod(_probability(one, c) for one, c in zip(ones, chances, strict=True))
        for i, share in enumerate(plan.shares(ones) if happens else ()):
            for two in product((0.0, 1.0), repeat=share):
                mr = fmean(ones[i] + two) if pooled else staged_mean(ones[i], two, plan.weight)
                expected[i] += happens * _probability(two, chances[i]) * mr
    return expected


def _probability(rewards: tuple[float, ...], chance: float) -> float:
    return prod(chance if reward else 1 - chance for reward in rewards)
