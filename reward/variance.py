"""Where the noise of MR comes from, and how many futures a reply should have.

    found = variance_components(groups, shared_users=True)
    K = found.best_K(reply_cost=60, future_cost=180)

The rewards R* of a prompt's replies differ because the replies do (`between`) and because each
future of a reply goes its own way (`within`). Only the first is what a group-relative advantage
is after. Promises: pure; what the numbers cannot tell is None, never 0. Knows nothing of
conversations or metrics.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, variance

Futures = Sequence[float | None]  # R* of a reply's futures by index k; None: no score
Group = Sequence[Futures]  # the replies to one prompt


@dataclass(frozen=True)
class VarianceComponents:
    """Two parts of the variance of R*, each in units of R* squared.

    Attributes:
        within: Variance between the futures of one reply, as far as it blurs the comparison of
            replies; None without a reply (or pair of replies) with two futures.
        between: Variance between the expected rewards of a prompt's replies, 0 or more; None
            without two replies to a prompt, or without `within`.
        unclipped: `between` before it was raised to 0. It is unbiased; average this one over
            steps, and clip the average.
    """

    within: float | None
    between: float | None
    unclipped: float | None

    def best_K(self, reply_cost: float, future_cost: float) -> float | None:  # noqa: N802
        """Return `best_K` of these components, or None where one is not known."""
        if self.within is None or self.between is None:
            return None
        return best_K(self.within, self.between, reply_cost, future_cost)


def variance_components(
    groups: Iterable[Group], *, shared_users: bool = False
) -> VarianceComponents:
    """Return the components, pooled over prompts.

    Args:
        groups: For each prompt the rewards of its replies' futures. Any reply may have any number.
        shared_users: Whether futures of one index k met the same user in all replies to a prompt,
            as in training. What that user adds to all of them is then no noise of the comparison
            and counts neither as `within` nor against `between`. Needs each future at its own
            index, None where it failed.
    """
    estimate = _crossed if shared_users else _nested
    within, unclipped = estimate(list(groups))
    between = None if unclipped is None else max(unclipped, 0.0)
    return VarianceComponents(within, between, unclipped)


def best_K(  # noqa: N802
    within: float, between: float, reply_cost: float, future_cost: float
) -> float:
    """Return the K at which the same cost buys the least variance, 1 or more.

    sqrt(reply_cost / future_cost * within / between), the minimum of `cost_variance`, which is
    convex: of whole numbers, one of the two next to it is best. With `between` 0 it is infinite:
    the replies do not differ, and more replies instead of futures would show nothing.

    Raises:
        ValueError: If a variance is negative or a cost not positive.
    """
    _check(within, between, reply_cost, future_cost)
    if within == 0:
        return 1.0
    if between == 0:
        return math.inf
    return max(1.0, math.sqrt(reply_cost / future_cost) * math.sqrt(within / between))


def cost_variance(
    K: float, within: float, between: float, reply_cost: float, future_cost: float
) -> float:
    """Return variance times cost of a mean over replies with K futures each.

    The mean of n replies' MR has variance (between + within / K) / n and costs n * (reply_cost +
    K * future_cost); the product does not depend on n. Group baseline and policy gradient are such
    means: at equal cost, their variance is in proportion to this.

    Raises:
        ValueError: If K is below 1, a variance is negative or a cost not positive.
    """
    _check(within, between, reply_cost, future_cost)
    if not K >= 1:
        raise ValueError(f"a reply has at least one future, got K={K}")
    return (between + within / K) * (reply_cost + K * future_cost)


def _nested(groups: Sequence[Group]) -> tuple[float | None, float | None]:
    """Return within and between for futures that have nothing in common.

    Pooled analysis of variance: reply means vary by between + within / K, where K is the
    harmonic mean of the replies' numbers of futures.
    """
    known = [[_scored(futures) for futures in group if _scored(futures)] for group in groups]
    pooled = _Mean()
    for rewards in (rewards for group in known for rewards in group if len(rewards) > 1):
        pooled.add(variance(rewards), len(rewards) - 1)
    means, inverse = _Mean(), _Mean()
    for group in (group for group in known if len(group) > 1):
        means.add(variance([fmean(rewards) for rewards in group]), len(group) - 1)
        inverse.add(fmean(1 / len(rewards) for rewards in group), len(group) - 1)
    return _parts(pooled, means, inverse)


def _crossed(groups: Sequence[Group]) -> tuple[float | None, float | None]:
    """Return within and between for futures that share the user of their index.

    From differences between two replies to one prompt, over the indices that both have: the user
    drops out of each, and half their variance is within, half their squared mean between +
    within / K. Without gaps this is the two-way analysis of variance.
    """
    pooled, means, inverse = _Mean(), _Mean(), _Mean()
    for one, other in (pair for group in groups for pair in combinations(group, 2)):
        differences = _scored([_difference(a, b) for a, b in zip(one, other, strict=False)])
        if len(differences) > 1:
            pooled.add(variance(differences) / 2, len(differences) - 1)
        if differences:
            means.add(fmean(differences) ** 2 / 2, 1)
            inverse.add(1 / len(differences), 1)
    return _parts(pooled, means, inverse)


def _parts(pooled: _Mean, means: _Mean, inverse: _Mean) -> tuple[float | None, float | None]:
    within, spread, share = pooled.value, means.value, inverse.value
    if within is None or spread is None or share is None:
        return within, None
    return within, spread - within * share


def _scored(futures: Futures) -> list[float]:
    return [reward for reward in futures if reward is not None]


def _difference(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


class _Mean:
    """A weighted mean that grows; None while it is empty."""

    def __init__(self) -> None:
        self._total = self._weight = 0.0

    def add(self, value: float, weight: int) -> None:
        self._total += value * weight
        self._weight += weight

    @property
    def value(self) -> float | None:
        return self._total / self._weight if self._weight else None


def _check(within: float, between: float, reply_cost: float, future_cost: float) -> None:
    for name, number in (("within", within), ("between", between)):
        if not 0 <= number < math.inf:
            raise ValueError(f"{name} is a variance, 0 or more and finite, got {number}")
    for name, number in (("reply_cost", reply_cost), ("future_cost", future_cost)):
        if not 0 < number < math.inf:
            raise ValueError(f"{name} must be positive and finite, got {number}")
