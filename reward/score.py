"""All metrics of one conversation, at once.

Promises: metrics run concurrently; every score is within its metric's range or the whole
conversation has no score (`MetricFailed`). Knows nothing of weights or futures.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping

from interaction.conversation import Conversation
from interaction.task import Task
from reward.metric import Metric, MetricContext, MetricFailed


async def score_conversation(
    task: Task,
    conversation: Conversation,
    metrics: Mapping[str, Metric],
    context: MetricContext | None = None,
) -> dict[str, float]:
    """Return each metric's score by name.

    Raises:
        MetricFailed: If one has no score or one out of its range; it names the metric.
    """
    context = context or MetricContext()
    scores = await asyncio.gather(
        *(_score(name, metric, task, conversation, context) for name, metric in metrics.items())
    )
    return dict(zip(metrics, scores, strict=True))


async def _score(
    name: str, metric: Metric, task: Task, conversation: Conversation, context: MetricContext
) -> float:
    try:
        score = await metric.score(task, conversation, context)
    except MetricFailed as error:
        raise MetricFailed(f"{name}: {error}") from error
    except Exception as error:
        raise MetricFailed(f"{name}: {type(error).__name__}: {error}") from error
    low, high = metric.range
    if not (math.isfinite(score) and low <= score <= high):
        raise MetricFailed(f"{name}: {score} is not within {low}..{high}")
    return score
