"""Means with bootstrap intervals, plain and paired.

Promises: percentile bootstrap over problems, seeded; the same values give the same interval.
Knows nothing of what the values are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 10_000


@dataclass(frozen=True)
class Interval:
    """A mean and its 95% interval.

    Attributes:
        mean: Of the sample.
        low, high: Bounds of the interval.
        n: Values it rests on.
    """

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.2f} [{self.low:.2f}, {self.high:.2f}]"


def mean_interval(values: Sequence[float], seed: int = 0) -> Interval:
    """Return the mean of independent values with its 95% interval.

    Raises:
        ValueError: If there are none.
    """
    if not len(values):
        raise ValueError("no values to average")
    sample = np.asarray(values, dtype=float)
    rng = np.random.default_rng(seed)
    means = sample[rng.integers(0, len(sample), (RESAMPLES, len(sample)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return Interval(float(sample.mean()), float(low), float(high), len(sample))


def paired_difference(before: Sequence[float], after: Sequence[float], seed: int = 0) -> Interval:
    """Return the mean of `after - before` over the same problems, with its 95% interval.

    Raises:
        ValueError: If the two are not of one length, or empty.
    """
    if len(before) != len(after):
        raise ValueError(f"{len(before)} values before, {len(after)} after: not pairs")
    return mean_interval([b - a for a, b in zip(before, after, strict=True)], seed)
