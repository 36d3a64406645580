"""R* of a conversation and the multiturn-aware reward of a reply (arXiv 2502.00640, Eq. 1-4).

    R*(conversation) = sum over metrics of weight * score
    MR(reply)        = mean of R* over the reply's valid futures

Promises: pure arithmetic; R* is taken per conversation and then averaged; any number of
futures; no future, no number. Knows nothing of where scores come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pvariance

from reward.metric import Metric


class NoValidFuture(ValueError):
    """A reply without a valid future has no reward; it is left out, never scored 0."""


@dataclass(frozen=True)
class MultiturnReward:
    """The reward of one reply.

    Attributes:
        value: MR, the mean of R* over valid futures.
        per_metric: Each metric's mean over valid futures, unweighted.
        n_valid: How many futures were valid.
        variance: Population variance of R* between them; 0 for one future.
    """

    value: float
    per_metric: Mapping[str, float]
    n_valid: int
    variance: float


def conversation_reward(scores: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return R* of one conversation.

    Raises:
        KeyError: If a weighted metric has no score.
    """
    return sum(weight * scores[name] for name, weight in weights.items())


def multiturn_reward(
    futures: Sequence[Mapping[str, float]], weights: Mapping[str, float]
) -> MultiturnReward:
    """Return the reward of a reply from the scores of its valid futures.

    Args:
        futures: One mapping of metric name to score a future.
        weights: Metric name to weight.

    Raises:
        NoValidFuture: If there is none.
        KeyError: If a weighted metric has no score.
    """
    if not futures:
        raise NoValidFuture("the reply has no valid future")
    rewards = [conversation_reward(scores, weights) for scores in futures]
    return MultiturnReward(
        value=fmean(rewards),
        per_metric={name: fmean(scores[name] for scores in futures) for name in weights},
        n_valid=len(futures),
        variance=pvariance(rewards),
    )


def reply_floor(
    metrics: Mapping[str, Metric], weights: Mapping[str, float], margin: float
) -> float:
    """Return what a truncated, empty or malformed reply gets.

    It is `margin` below the least R* that the weights and the metrics' ranges allow, so a
    reply that cannot be used is always worse than the worst one that can.

    Raises:
        ValueError: If the margin is not positive.
    """
    if margin <= 0:
        raise ValueError(f"the floor's margin must be positive, got {margin}")
    worst = sum(
        min(weight * bound for bound in metrics[name].range) for name, weight in weights.items()
    )
    return worst - margin
