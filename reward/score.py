"""All metrics of one conversation, at once.

Promises: metrics run concurrently, those that need a judge share its call; every score is within
its metric's range or the whole conversation has no score (`MetricFailed`). Knows nothing of
weights or futures.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from interaction.conversation import Conversation, StopReason
from interaction.task import Task
from reward.judge.judge import Judge, JudgeVerdicts
from reward.metric import ChecksTask, Judged, Metric, MetricContext, MetricFailed, TaskUnfit


async def score_conversation(
    task: Task,
    conversation: Conversation,
    metrics: Mapping[str, Metric],
    context: MetricContext | None = None,
    judge: Judge | None = None,
) -> dict[str, float]:
    """Return each metric's score by name.

    Args:
        task: What it was about.
        conversation: Ends with a policy turn, or with the user's own "done".
        metrics: By name.
        context: What was there before the policy spoke, how tokens are counted.
        judge: Who answers for metrics that need one, unless the context has verdicts.

    Raises:
        MetricFailed: If the conversation cannot be scored, or one metric has no score or one
            out of its range; it names the metric.
    """
    context = context or MetricContext()
    check_whole(conversation, context)
    if judge is not None and context.verdicts is None:
        context = replace(context, verdicts=judged(judge, task, conversation, metrics, context))
    scores = await asyncio.gather(
        *(_score(name, metric, task, conversation, context) for name, metric in metrics.items())
    )
    return dict(zip(metrics, scores, strict=True))


def judged(
    judge: Judge,
    task: Task,
    conversation: Conversation,
    metrics: Mapping[str, Metric],
    context: MetricContext,
) -> JudgeVerdicts:
    """Return the judge's verdicts for all metrics that need one; nothing is asked yet."""
    questions = [metric.question for metric in metrics.values() if isinstance(metric, Judged)]
    return judge.verdicts(task, conversation, questions, given=context.given, seed=context.seed)


def check_whole(conversation: Conversation, context: MetricContext) -> None:
    """Check that a conversation can be scored at all.

    Raises:
        MetricFailed: If it is empty, the policy says nothing in it, or it ends on a user turn
            that the policy owes an answer.
    """
    last = conversation.last
    if last is None:
        raise MetricFailed("the conversation is empty")
    if not context.policy_turns(conversation):
        raise MetricFailed("the conversation has no policy turn")
    if last.role != "assistant" and conversation.stop is not StopReason.USER_DONE:
        raise MetricFailed(
            f"the conversation ends on a {last.role} turn: its last policy turn is missing "
            "(a user who left is told by stop=user_done)"
        )


def check_tasks(tasks: Iterable[Task], metrics: Mapping[str, Metric]) -> None:
    """Check that every task has what the metrics need.

    Raises:
        TaskUnfit: If one has not; names its position, the metric, the key and the remedy.
    """
    checking = [
        (name, metric) for name, metric in metrics.items() if isinstance(metric, ChecksTask)
    ]
    for number, task in enumerate(tasks):
        for name, metric in checking:
            try:
                metric.check(task)
            except TaskUnfit as error:
                raise TaskUnfit(f"row {number}: metric {name}: {error}") from error


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
