"""Weights of R*, checked: what can be known to be wrong before anything is scored.

Promises: weights that pass name existing scores, are finite and tell conversations apart.
Knows nothing of where they come from.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping


def check_weights(weights: Mapping[str, object], metrics: Collection[str]) -> dict[str, float]:
    """Return weights as numbers.

    Args:
        weights: Metric name to weight.
        metrics: The metrics that there is a score of.

    Raises:
        ValueError: If there are none, one names no metric, is not a finite number, or all are 0.
    """
    if not weights:
        raise ValueError("there are no weights: give at least one metric a weight")
    for name, weight in weights.items():
        if name not in metrics:
            raise ValueError(
                f"{name}: a weight, but no such metric is scored; there are: {', '.join(metrics)}"
            )
        if isinstance(weight, bool) or not isinstance(weight, int | float):
            raise ValueError(f"{name}.weight={weight}: must be a number")
        if not math.isfinite(weight):
            raise ValueError(f"{name}.weight={weight}: must be finite")
    numbers = {name: float(weight) for name, weight in weights.items()}  # type: ignore[arg-type]
    if not any(numbers.values()):
        raise ValueError(
            f"the weights of {', '.join(numbers)} are all 0: every conversation would be worth "
            "the same"
        )
    return numbers
