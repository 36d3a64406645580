"""Metrics by name: what `collabllm.metrics` in the configuration chooses from.

Promises: an unknown name or option is an error that lists what there is.
Knows nothing of what the metrics do.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from reward import metrics
from reward.metric import Metric

Class = TypeVar("Class", bound=type)

_METRICS: dict[str, type] = {}


def register(name: str) -> Callable[[Class], Class]:
    """Register a metric class under a name; a plug-in of your own does the same."""

    def decorate(cls: Class) -> Class:
        known = _METRICS.get(name)
        if known is not None and known.__qualname__ != cls.__qualname__:
            raise ValueError(f"the metric name {name!r} is taken by {known.__module__}")
        _METRICS[name] = cls
        return cls

    return decorate


def metric_names() -> list[str]:
    """Return the names of all metrics."""
    for module in pkgutil.iter_modules(metrics.__path__):
        importlib.import_module(f"{metrics.__name__}.{module.name}")
    return sorted(_METRICS)


def make_metrics(chosen: Mapping[str, Mapping[str, Any]]) -> dict[str, Metric]:
    """Make metrics from their options by name; a `weight` among them is not the metric's.

    Raises:
        ValueError: If one does not exist or has no such option.
    """
    return {
        name: make_metric(name, {k: v for k, v in options.items() if k != "weight"})
        for name, options in chosen.items()
    }


def make_metric(name: str, options: Mapping[str, Any] | None = None) -> Metric:
    """Make a metric.

    Args:
        name: Its registered name.
        options: Its settings by name.

    Raises:
        ValueError: If there is no such metric or it has no such option.
    """
    names = metric_names()
    if name not in names:
        raise ValueError(f"unknown metric {name!r}; there are: {', '.join(names)}")
    try:
        metric: Metric = _METRICS[name](**dict(options or {}))
    except TypeError as error:
        raise ValueError(f"metric {name!r}: {error}") from error
    return metric
