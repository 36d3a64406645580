"""R* of a conversation and the multiturn-aware reward of a reply (arXiv 2502.00640, Eq. 1-4).

    R*(conversation) = sum over metrics of weight * score
    MR(reply)        = mean of R* over the reply's valid futures

Promises: pure arithmetic; R* is taken per conversation and then averaged; any number of
futures, in any order, gives the same to the last bit; no future, no number. Knows nothing of
where scores come from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, mean, pvariance

from reward.metric import Metric

MOST_SATURATED = 0.1


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

    With weights of 1, a task metric for R_ext, `token_amount` and a judged metric for R_LLM, this
    is the paper's R_ext + R_int, R_int = -min(lambda * tokens, 1) + R_LLM.

    Raises:
        KeyError: If a weighted metric has no score.
        ValueError: If the sum is not finite, so that a bad score cannot pass for a reward.
    """
    reward = math.fsum(weight * scores[name] for name, weight in weights.items())
    if not math.isfinite(reward):
        raise ValueError(f"R* is {reward}: scores {dict(scores)}, weights {dict(weights)}")
    return reward


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
        ValueError: If R* of a future is not finite.
    """
    if not futures:
        raise NoValidFuture("the reply has no valid future")
    rewards = [conversation_reward(scores, weights) for scores in futures]
    # `mean` rounds once, `fmean` twice: its mean of three equal rewards may be above all of them.
    return MultiturnReward(
        value=mean(rewards),
        per_metric={name: mean(scores[name] for scores in futures) for name in weights},
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
    if not margin > 0:
        raise ValueError(f"the floor's margin must be positive, got {margin}")
    worst = math.fsum(
        min(weight * bound for bound in metrics[name].range) for name, weight in weights.items()
    )
    return worst - margin


def saturated_share(
    futures: Sequence[Mapping[str, float]], metrics: Mapping[str, Metric]
) -> dict[str, float]:
    """Return for each cost the share of conversations at its cap, in 0..1.

    A cost is a metric whose best score is 0, such as `token_amount`. At its cap it tells
    conversations apart no more: the longest cost as much as the merely long.

    Args:
        futures: The scores of valid futures; without any there is no share.
        metrics: By name, costs and others.
    """
    costs = {name: metric.range[0] for name, metric in metrics.items() if metric.range[1] == 0}
    if not futures:
        return {}
    return {name: fmean(scores[name] <= cap for scores in futures) for name, cap in costs.items()}


def saturation_warnings(
    shares: Mapping[str, float], most: float = MOST_SATURATED
) -> dict[str, str]:
    """Return for each cost that is at its cap too often what to do about it.

    Args:
        shares: What `saturated_share` returned.
        most: Largest share that is put up with, in 0..1.
    """
    return {
        name: f"{name} is at its cap in {share:.0%} of conversations and tells them apart no "
        f"more: lower collabllm.metrics.{name}.lam"
        for name, share in shares.items()
        if share > most
    }
