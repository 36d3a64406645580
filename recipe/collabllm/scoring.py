"""From a reply's futures to its reward: what the reward manager does, without verl.

Promises: an unusable reply gets the floor and is not scored; a future that cannot be scored is
dropped with its reason; a reply without a valid future is left out, never given a number.
Knows nothing of verl, Ray or files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from interaction.task import Task
from recipe.collabllm.record import FutureRecord, Outcome, ReplyRecord
from recipe.collabllm.settings import Settings
from reward.allocation import FuturePlan, staged_mean
from reward.judge.judge import Judge, JudgeVerdicts
from reward.metric import Metric, MetricContext, MetricFailed
from reward.multiturn_reward import conversation_reward, multiturn_reward
from reward.score import judged, score_conversation


@dataclass(frozen=True)
class ReplyScorer:
    """Scores replies by the settings' metrics.

    Attributes:
        settings: Metrics, weights and floor.
        count_tokens: Length of a text in the policy's tokens.
    """

    settings: Settings
    count_tokens: Callable[[str], int]
    _metrics: Mapping[str, Metric] = field(init=False)
    _judge: Judge | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_metrics", self.settings.make_metrics())
        object.__setattr__(self, "_judge", self.settings.make_judge())

    async def score(self, task: Task, record: ReplyRecord) -> ReplyRecord:
        """Return the record with scores, reward and outcome."""
        if record.fault:
            return replace(record, outcome=Outcome.FLOOR, mr=self.settings.floor)
        futures = await self.futures(task, record)
        record = replace(record, futures=futures)
        valid = [future.scores for future in futures if future.failure is None]
        if not valid:
            return replace(record, outcome=Outcome.LEFT_OUT, mr=None, n_valid=0)
        reward = multiturn_reward(valid, self.settings.weights)
        value, per_metric = reward.value, dict(reward.per_metric)
        if plan := self.settings.plan:
            value, per_metric = self._staged(plan, futures)
        return replace(
            record,
            outcome=Outcome.SCORED,
            mr=value,
            per_metric=per_metric,
            n_valid=reward.n_valid,
            variance=reward.variance,
        )

    async def futures(self, task: Task, record: ReplyRecord) -> list[FutureRecord]:
        """Return a record's futures, each with scores or a failure; what is scored stays."""
        scored = (self._future(task, record, future) for future in record.futures)
        return list(await asyncio.gather(*scored))

    def _staged(
        self, plan: FuturePlan, futures: Sequence[FutureRecord]
    ) -> tuple[float, dict[str, float]]:
        """Return MR and metrics with K=auto: each stage has its share, whatever was handed out."""
        weights = self.settings.weights
        valid = [future for future in futures if future.failure is None]
        first = [future.scores for future in valid if future.k < plan.first]
        second = [future.scores for future in valid if future.k >= plan.first]
        value = staged_mean(
            [conversation_reward(scores, weights) for scores in first],
            [conversation_reward(scores, weights) for scores in second],
            plan.weight,
        )
        per_metric = {
            name: staged_mean([s[name] for s in first], [s[name] for s in second], plan.weight)
            for name in weights
        }
        return value, per_metric

    async def _future(self, task: Task, record: ReplyRecord, future: FutureRecord) -> FutureRecord:
        if future.failure is not None or future.reward is not None:
            return future
        conversation = record.conversation(future)
        # The seed of the user: the n replies to a prompt meet the same judge, too.
        context = MetricContext(record.given, self.count_tokens, seed=future.user_seed)
        verdicts = None
        if self._judge is not None:
            verdicts = judged(self._judge, task, conversation, self._metrics, context)
            context = replace(context, verdicts=verdicts)
        try:
            scores = await score_conversation(task, conversation, self._metrics, context)
        except MetricFailed as error:
            return replace(future.failed(f"metric: {error}"), judge_usage=_usage(verdicts))
        reward = conversation_reward(scores, self.settings.weights)
        return replace(future, scores=scores, reward=reward, judge_usage=_usage(verdicts))


def _usage(verdicts: JudgeVerdicts | None) -> dict[str, float]:
    return dict(verdicts.usage) if verdicts else {}
