"""Variance components of MR, the best number of futures, and what shared users are worth."""

from __future__ import annotations

import asyncio
import math
import re
from statistics import fmean, pvariance, stdev, variance
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from benchmarks import common_random_numbers
from benchmarks.common_random_numbers import (
    Setting,
    StochasticPolicy,
    make_metrics,
    measure,
    play,
    play_group,
    ratio_interval,
)
from data.planning.domains import load_domains
from data.planning.problem import distinct_problems
from interaction.conversation import Conversation
from interaction.policy import PolicyTurn
from interaction.seeds import derive_random
from reward.variance import (
    Group,
    VarianceComponents,
    best_K,
    cost_variance,
    variance_components,
)
from tests.conftest import PROJECT

rewards = st.floats(-3, 3, allow_nan=False).map(lambda number: round(number, 6))
replies = st.lists(rewards | st.none(), max_size=4)
prompts = st.lists(st.lists(replies, max_size=5), max_size=4)
variances = st.floats(1e-6, 1e3)
costs = st.floats(1e-3, 1e4)


def drawn(
    seed: int,
    prompts: int,
    sizes: list[int],
    *,
    between: float,
    within: float,
    user: float = 0.0,
) -> list[Group]:
    """Return groups of replies with these numbers of futures and these true variances."""
    rng = np.random.default_rng(seed)
    groups: list[Group] = []
    for _ in range(prompts):
        level, users = rng.normal(0, 5), rng.normal(0, math.sqrt(user), max(sizes))
        groups.append(
            [
                (
                    level
                    + rng.normal(0, math.sqrt(between))
                    + users[:size]
                    + rng.normal(0, math.sqrt(within), size)
                ).tolist()
                for size in sizes
            ]
        )
    return groups


class TestByHand:
    GROUP: Group = [[1.0, 3.0], [4.0, 6.0, 8.0], [0.0]]

    def test_components_of_a_ragged_group(self) -> None:
        """Squares about the means: 2 + 8 over 1 + 2; means 2, 6, 0 vary by 28 / 3."""
        found = variance_components([self.GROUP])
        within, inverse = 10 / 3, (1 / 2 + 1 / 3 + 1) / 3
        assert found.within == pytest.approx(within)
        assert found.between == pytest.approx(28 / 3 - within * inverse)

    def test_components_with_shared_users(self) -> None:
        """Differences -3, -3 of the first two; 1 and 4 to the lone future of the third."""
        found = variance_components([self.GROUP], shared_users=True)
        assert found.within == 0
        assert found.between == pytest.approx((9 + 1 + 16) / 2 / 3)

    def test_failed_futures_keep_their_index(self) -> None:
        group: Group = [[None, 1.0, 2.0], [7.0, 2.0, 5.0], [None, None, None]]
        found = variance_components([group], shared_users=True)
        within = variance([-1.0, -3.0]) / 2
        assert found.within == pytest.approx(within)
        assert found.unclipped == pytest.approx(2**2 / 2 - within / 2)


def test_the_example_of_the_docs_runs() -> None:
    """docs/reward.md: differences 0.9 and 0.3 over the futures that both replies have."""
    text = (PROJECT / "docs" / "reward.md").read_text(encoding="utf-8")
    (block,) = (code for code in re.findall(r"```python\n(.*?)```", text, re.S) if "groups" in code)
    names: dict[str, Any] = {}
    exec(block, names)
    found: VarianceComponents = names["found"]
    assert found.within == pytest.approx(0.18 / 2)
    assert found.between == pytest.approx(0.6**2 / 2 - 0.09 / 2)


class TestUnknown:
    @pytest.mark.parametrize("shared", [False, True])
    @pytest.mark.parametrize(
        ("groups", "known"),
        [
            ([], False),
            ([[[1.0]], [[2.0]]], False),
            ([[[1.0], [2.0]]], False),
            ([[[1.0, None], [None, None]]], False),
            ([[[1.0, 2.0], [None, None]]], False),
            ([[[1.0, 2.0], [1.0, 4.0]]], True),
        ],
    )
    def test_what_cannot_be_told_is_none(
        self, groups: list[Group], known: bool, shared: bool
    ) -> None:
        found = variance_components(groups, shared_users=shared)
        assert (found.between is not None) == known
        assert (found.best_K(1, 1) is not None) == known

    def test_replies_that_differ_less_than_chance_have_no_negative_variance(self) -> None:
        found = variance_components([[[0.0, 2.0], [0.0, 2.0]]])
        assert found == VarianceComponents(within=2.0, between=0.0, unclipped=-1.0)
        assert found.best_K(1, 1) == math.inf


@settings(deadline=None)
@given(prompts, st.booleans())
def test_any_rewards_give_variances_or_none(groups: list[Group], shared: bool) -> None:
    found = variance_components(groups, shared_users=shared)
    for part in (found.within, found.between):
        assert part is None or (part >= 0 and math.isfinite(part))


@settings(deadline=None)
@given(prompts, st.booleans(), rewards, st.floats(0.1, 4))
def test_a_shift_of_a_prompt_changes_nothing_and_a_factor_counts_squared(
    groups: list[Group], shared: bool, shift: float, factor: float
) -> None:
    def moved(reward: float | None) -> float | None:
        return None if reward is None else factor * (reward + shift)

    found = variance_components(groups, shared_users=shared)
    after = variance_components(
        [[list(map(moved, futures)) for futures in group] for group in groups], shared_users=shared
    )
    for one, other in ((found.within, after.within), (found.unclipped, after.unclipped)):
        assert (one is None) == (other is None)
        if one is not None:
            assert other == pytest.approx(factor**2 * one, rel=1e-6, abs=1e-6)


@settings(deadline=None)
@given(st.lists(st.lists(rewards, min_size=2, max_size=2), min_size=2, max_size=6))
def test_without_common_users_both_ways_expect_the_same_spread_of_means(group: Group) -> None:
    """Without gaps, half the mean squared difference of two means is the means' variance."""
    shared = variance_components([group], shared_users=True)
    means = [fmean(reward for reward in futures if reward is not None) for futures in group]
    assert shared.unclipped is not None and shared.within is not None
    assert shared.unclipped + shared.within / 2 == pytest.approx(variance(means), abs=1e-9)


class TestKnownTruth:
    """Means of many estimates against the components that the rewards were drawn with."""

    @pytest.mark.parametrize(
        ("sizes", "between", "within", "user", "shared"),
        [
            ([3] * 8, 0.3, 2.0, 0.0, False),
            ([1, 2, 3, 4, 5], 0.3, 2.0, 0.0, False),
            ([1, 1, 1, 2], 0.0, 1.0, 0.0, False),
            ([3] * 8, 0.3, 2.0, 4.0, True),
            ([1, 2, 3, 4, 5], 0.3, 2.0, 4.0, True),
        ],
    )
    def test_estimates_are_unbiased(
        self, sizes: list[int], between: float, within: float, user: float, shared: bool
    ) -> None:
        found = [
            variance_components(
                drawn(seed, 4, sizes, between=between, within=within, user=user),
                shared_users=shared,
            )
            for seed in range(200)
        ]
        for name, truth in (("within", within), ("unclipped", between)):
            estimates = [getattr(one, name) for one in found]
            error = stdev(estimates) / math.sqrt(len(estimates))
            assert abs(fmean(estimates) - truth) < 4 * error, name

    def test_taking_shared_users_for_noise_hides_what_replies_differ_by(self) -> None:
        groups = drawn(0, 400, [3] * 8, between=0.3, within=0.5, user=3.0)
        as_noise = variance_components(groups)
        as_shared = variance_components(groups, shared_users=True)
        assert as_noise.within == pytest.approx(3.5, rel=0.1) and as_noise.between == 0
        assert as_shared.within == pytest.approx(0.5, rel=0.1)
        assert as_shared.between == pytest.approx(0.3, rel=0.15)


class TestBestK:
    @settings(deadline=None)
    @given(variances, variances, costs, costs)
    def test_no_other_number_of_futures_is_cheaper(
        self, within: float, between: float, reply: float, future: float
    ) -> None:
        best = best_K(within, between, reply, future)
        assume(best < 1e5)
        least = cost_variance(best, within, between, reply, future)
        for other in [*range(1, 40), best * 0.9, best * 1.1, best + 1]:
            if other >= 1:
                value = cost_variance(other, within, between, reply, future)
                assert value >= least * (1 - 1e-12)

    @settings(deadline=None)
    @given(variances, variances, costs, costs)
    def test_of_whole_numbers_a_neighbour_is_best(
        self, within: float, between: float, reply: float, future: float
    ) -> None:
        best = best_K(within, between, reply, future)
        assume(best < 60)
        whole = min(range(1, 62), key=lambda K: cost_variance(K, within, between, reply, future))
        assert abs(whole - best) < 1 + 1e-9

    def test_is_the_formula(self) -> None:
        assert best_K(within=0.9, between=0.1, reply_cost=4, future_cost=1) == pytest.approx(6)
        assert VarianceComponents(0.9, 0.1, 0.1).best_K(4, 1) == pytest.approx(6)

    def test_is_never_less_than_one_future(self) -> None:
        assert best_K(within=0.1, between=0.9, reply_cost=1, future_cost=1) == 1
        assert best_K(within=0.0, between=0.0, reply_cost=1, future_cost=1) == 1

    def test_replies_that_do_not_differ_want_all_futures_there_can_be(self) -> None:
        assert best_K(within=0.1, between=0.0, reply_cost=1, future_cost=1) == math.inf

    @pytest.mark.parametrize(
        "numbers",
        [(-1, 1, 1, 1), (1, -1, 1, 1), (1, 1, 0, 1), (1, 1, 1, math.inf), (math.nan,) * 4],
    )
    def test_impossible_numbers_are_refused(self, numbers: tuple[float, ...]) -> None:
        with pytest.raises(ValueError, match="variance|must be positive"):
            best_K(*numbers)

    def test_less_than_one_future_is_refused(self) -> None:
        with pytest.raises(ValueError, match="at least one future"):
            cost_variance(0.5, 1, 1, 1, 1)

    def test_simulated_means_at_one_budget_vary_as_it_says(self) -> None:
        """Budget 600, a reply 4, a future 1: n replies with K futures, drawn 4,000 times."""
        rng = np.random.default_rng(1)
        within, between, simulated = 4.0, 1.0, {}
        for K in (1, 2, 4, 8, 16):
            n = 600 // (4 + K)
            means = rng.normal(0, 1, (4000, n)) + rng.normal(0, math.sqrt(4 / K), (4000, n))
            simulated[K] = pvariance(means.mean(axis=1).tolist())
            told = cost_variance(K, within, between, 4, 1) / (n * (4 + K))
            assert simulated[K] == pytest.approx(told, rel=0.12)  # five standard errors
        assert best_K(within, between, 4, 1) == 4
        assert min(simulated, key=simulated.__getitem__) in (2, 4, 8)


class TestCommonRandomNumbers:
    """benchmarks/common_random_numbers.py, on few groups."""

    def test_it_runs_and_neither_way_is_biased(self) -> None:
        result = measure(Setting(replies=4, K=1, window=1, draws=6), groups=8)
        assert result["groups"] == 8
        shared, own = result["shared_users"], result["own_users"]
        assert isinstance(shared, float) and isinstance(own, float) and shared > 0 < own
        bias = result["bias_in_standard_errors"]
        assert isinstance(bias, float) and bias < 2

    def test_the_same_seed_gives_the_same_figures_and_draws_differ(self) -> None:
        task = next(distinct_problems(load_domains(), derive_random(0, "problems")))
        setting = Setting(replies=3, K=2, window=1, draws=3)
        shared, own = play_group(setting, (0, task))
        again, _ = play_group(setting, (0, task))
        assert shared.shape == own.shape == (3, 3, 2)
        assert (shared == again).all()
        assert np.ptp(own, axis=0).any()

    def test_equal_replies_of_a_settled_policy_differ_only_by_users_of_their_own(self) -> None:
        class Settled(StochasticPolicy):
            async def reply(self, *args: object) -> PolicyTurn:
                return PolicyTurn("Fine.")

        task = next(distinct_problems(load_domains(), derive_random(0, "problems")))
        domain = next(d for d in load_domains() if d.name == task.metadata["domain"])
        policy = Settled(task, domain)
        asked = " ".join(domain.slots[fact.slot].questions[0] for fact in task.goal.facts)
        talk = Conversation().add("user", "Help me plan.").add("assistant", asked)
        group = common_random_numbers.Group(policy, (talk,) * 6, given=1)
        shared, own = (
            asyncio.run(play(group, make_metrics(), 4, 1, seed=1, shared=together))
            for together in (True, False)
        )
        assert not np.ptp(shared, axis=0).any()
        assert np.ptp(own, axis=0).any() and np.ptp(shared, axis=1).any()

    def test_the_interval_of_a_ratio_holds_the_ratio(self) -> None:
        ratio, low, high = ratio_interval([1.0, 2.0, 3.0, 2.0], [2.0, 4.0, 6.0, 5.0])
        assert ratio == pytest.approx(8 / 17) and low <= ratio <= high
        assert ratio_interval([1.0, 2.0], [2.0, 4.0]) == pytest.approx((0.5, 0.5, 0.5))
