"""Futures where a group's ranking is least certain: two stages, the second one handed out.

Promises: pure and deterministic; what a reply's MR is expected to be does not depend on what it
or its group was given (`FuturePlan` has the proof). Knows nothing of how futures are played,
or of who asks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from reward.multiturn_reward import NoValidFuture

# How many degrees of freedom the group counts for beside what a reply, or the users, show of
# their own in a few futures. Chosen with benchmarks/future_budget.py: less follows the luck of two
# or three futures, more is uniform K.
PRIOR_WEIGHT = 1.0
# Variance that every reply has at least: what rounding leaves between equal rewards is none.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class FuturePlan:
    """How a group's futures are spent, fixed before any is played.

    Stage one plays `first` futures of every usable reply. Stage two plays at least one more of
    each and hands out what is left of the budget (`allocate`); `staged_mean` puts the two
    together with `weight`.

    Why no reply is favoured: each stage's mean is an average of futures of which each is worth
    MR in expectation, stage two's whatever `allocate` has seen, because its seeds are new. So
    E[weight * one + (1 - weight) * two] = weight * MR + (1 - weight) * MR = MR of every reply,
    and so of the group's mean. A plain mean over all futures would weigh stage one by how it
    came out, and be biased.

    Attributes:
        mean: Futures a reply over the group: n replies share n * mean.
        first: Futures of every reply in stage one. With 1 nothing is seen of how replies vary and
            stage two is uniform, with 2 nearly so; 3 or 4 are worth acting on.
        most: Most futures of one reply, both stages together.

    Raises:
        ValueError: If not 1 <= first < mean <= most.
    """

    mean: int
    first: int
    most: int

    def __post_init__(self) -> None:
        if not 1 <= self.first < self.mean <= self.most:
            raise ValueError(
                f"futures first={self.first}, mean={self.mean}, most={self.most}: "
                "needs 1 <= first < mean <= most"
            )

    @property
    def weight(self) -> float:
        """Stage one's share of MR: that of its futures, were all replies given the same."""
        return self.first / self.mean

    def shares(self, stage_one: Sequence[Sequence[float] | None], absent: int = 0) -> list[int]:
        """Return how many futures each reply plays in stage two.

        Args:
            stage_one: As `allocate` takes it.
            absent: Further replies of the group of which nothing is known; each may have played
                stage one and is kept the minimum for stage two.
        """
        usable = sum(rewards is not None for rewards in stage_one)
        whole = self.mean * (len(stage_one) + absent)
        budget = whole - self.first * usable - (self.first + 1) * absent
        return list(allocate(stage_one, budget, self.most - self.first))


@dataclass(frozen=True)
class GroupNoise:
    """Where the rewards of a group's futures vary, as far as stage one tells.

    Attributes:
        own: Each usable reply's variance between futures, the users' part taken out.
        shared: Variance that comes with the user of a future, the same for all replies.
    """

    own: tuple[float, ...]
    shared: float

    def uncertainty(self, counts: Sequence[int]) -> float:
        """Return the summed variance of the gaps between all pairs of replies.

        The gap between two replies is as uncertain as both their means. Their users are the same
        as far as both have futures, and what they add cancels there: only the rest counts.
        """
        pairs = combinations(zip(self.own, counts, strict=True), 2)
        return sum(v / m + w / k + self.shared * abs(1 / m - 1 / k) for (v, m), (w, k) in pairs)

    def change(self, counts: Sequence[int], i: int, step: int) -> float:
        """Return what `step` more futures of reply `i` do to the uncertainty."""
        now, then = 1 / counts[i], 1 / (counts[i] + step)
        others = [1 / count for j, count in enumerate(counts) if j != i]
        users = sum(abs(then - other) - abs(now - other) for other in others)
        return len(others) * self.own[i] * (then - now) + self.shared * users


def allocate(
    stage_one: Sequence[Sequence[float] | None], budget: int, most: int
) -> tuple[int, ...]:
    """Hand out stage two's futures.

    The ranking is least certain where the gaps between replies are: futures are shared out evenly,
    then moved one by one from the reply that misses it least to the one that it helps most, as
    long as that makes the gaps more certain on the whole (for replies without shared users that
    is Neyman's allocation). Ties go to the lower index.

    Args:
        stage_one: Each reply's valid rewards R* so far, by the users of stage one; empty where
            every future failed, None for a reply that cannot be used.
        budget: Futures to hand out. Where it is less than one a usable reply, each still gets
            one; where `most` is in the way, some are left.
        most: Most futures of a reply in this stage, from 1 up.

    Returns:
        Futures by reply, 0 for None.

    Raises:
        ValueError: If `most` is below 1 or a reward is not finite.
    """
    if most < 1:
        raise ValueError(f"most={most}: every usable reply gets at least one future")
    usable = [i for i, rewards in enumerate(stage_one) if rewards is not None]
    noise = group_noise([rewards for rewards in stage_one if rewards is not None])
    counts = [0] * len(stage_one)
    for i, count in zip(usable, share_out(noise, budget, most), strict=True):
        counts[i] = count
    return tuple(counts)


def share_out(noise: GroupNoise, budget: int, most: int) -> list[int]:
    """Return futures by usable reply, each 1 to `most`: `allocate` once the noise is known."""
    n = len(noise.own)
    if not n:
        return []
    whole, rest = divmod(min(max(budget, n), most * n), n)
    counts = [whole + (i < rest) for i in range(n)]
    uncertainty = noise.uncertainty(counts)
    while moved := _moved(noise, counts, most):
        less = noise.uncertainty(moved)
        if not less < uncertainty * (1 - 1e-9):
            break
        counts, uncertainty = moved, less
    return counts


def _moved(noise: GroupNoise, counts: list[int], most: int) -> list[int] | None:
    """Return the counts after the best move of one future; None if nothing can be moved."""
    takers = [i for i, count in enumerate(counts) if count < most]
    if not takers:
        return None
    taker = min(takers, key=lambda i: noise.change(counts, i, 1))
    givers = [i for i, count in enumerate(counts) if count > 1 and i != taker]
    if not givers:
        return None
    giver = min(givers, key=lambda i: noise.change(counts, i, -1))
    return [count + (i == taker) - (i == giver) for i, count in enumerate(counts)]


def group_noise(stage_one: Sequence[Sequence[float]]) -> GroupNoise:
    """Tell the users' part of the variance from the replies' own, from few futures.

    As in a two-way table of replies and users. Few futures say little about a variance, and two
    alike do not mean that the third will be: the group's pooled variance counts as
    `PRIOR_WEIGHT` degrees of freedom of each, the users' included. Where a future failed, replies
    and users do not line up, and the users' part is taken to be as large as the pooled variance.

    Raises:
        ValueError: If a reward is not finite.
    """
    if not all(math.isfinite(reward) for rewards in stage_one for reward in rewards):
        raise ValueError(f"rewards must be finite, got {stage_one}")
    freedom = [max(0, len(rewards) - 1) for rewards in stage_one]
    if not sum(freedom):
        return GroupNoise((1.0,) * len(stage_one), 0.0)
    rows = [_centred(rewards) for rewards in stage_one]
    told = sum(bool(row) for row in rows)
    users = _user_effects(rows)
    # The effects were told from these replies and took part of their variance along.
    lost = told / (told - 1) if users else 1.0
    squares = [lost * _squared_distance(row, users or [0.0] * len(row)) for row in rows]
    pool = sum(squares) / sum(freedom)
    own = [_drawn_to(pool, square, free) for square, free in zip(squares, freedom, strict=True)]
    users_free = max(0, len(users) - 1)
    # Told from few replies, an effect holds a share of their own variance too.
    spread = sum(effect**2 for effect in users) - users_free * pool / told
    shared = max(0.0, _drawn_to(pool, spread, users_free))
    return GroupNoise(tuple(variance + _ROUNDING for variance in own), shared)


def _centred(rewards: Sequence[float]) -> list[float]:
    center = fmean(rewards) if rewards else 0.0
    return [reward - center for reward in rewards]


def _user_effects(rows: Sequence[Sequence[float]]) -> list[float]:
    """Return what each user adds, over all replies; nothing where rows do not line up."""
    told = [row for row in rows if row]
    if len(told) < 2 or len({len(row) for row in told}) > 1:
        return []
    return [fmean(column) for column in zip(*told, strict=True)]


def _squared_distance(row: Sequence[float], users: Sequence[float]) -> float:
    """Return the squared distance of a reply's futures from the users' effects; empty: 0."""
    return sum((reward - user) ** 2 for reward, user in zip(row, users, strict=False))


def _drawn_to(pool: float, squares: float, freedom: int) -> float:
    """Return a variance with the pooled one as `PRIOR_WEIGHT` further degrees of freedom."""
    return (squares + PRIOR_WEIGHT * pool) / (freedom + PRIOR_WEIGHT)


def staged_mean(first: Sequence[float], second: Sequence[float], weight: float) -> float:
    """Return a reply's MR from its valid rewards R* in both stages.

    A stage without a valid future is left to the other one. That is exact while failures have
    nothing to do with what a future would have been worth; stage one alone is then slightly
    favoured where few futures were given, because those were given by it.

    Args:
        first: Rewards of stage one.
        second: Rewards of stage two.
        weight: Stage one's share, 0..1, fixed before anything was played.

    Raises:
        NoValidFuture: If there is none in either.
        ValueError: If the weight is out of range.
    """
    if not 0 <= weight <= 1:
        raise ValueError(f"weight={weight}: a share, from 0 to 1")
    if not first and not second:
        raise NoValidFuture("the reply has no valid future in either stage")
    if not first or not second:
        return fmean(first or second)
    return weight * fmean(first) + (1 - weight) * fmean(second)
