"""A stored conversation's scores, R* and what became of it.

Promises: metrics score as they do in training; a conversation without a score has a reason and
no number; an unusable reply has the floor. Knows nothing of files and terminals.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from recipe.collabllm.metric_choice import MetricChoice
from recipe.collabllm.record import Outcome
from recipe.collabllm.stored_conversation import StoredConversation
from recipe.collabllm.token_count import CountTokens
from reward.judge.judge import Judge
from reward.metric import MetricContext, MetricFailed
from reward.multiturn_reward import conversation_reward, reply_floor
from reward.score import judged, score_conversation


@dataclass(frozen=True)
class ScoredConversation:
    """What one conversation was worth.

    Attributes:
        line, k: Which one; see `StoredConversation`.
        task_id: The problem.
        outcome: `scored`, `floor` or `left_out`.
        scores: Per metric; empty unless it was scored.
        reward: R*, or the floor; None if it was left out.
        failure: Why it was left out.
        judge_usage: What the judge cost, as in `ChatAnswer.usage`.
    """

    line: int
    k: int | None
    task_id: str
    outcome: Outcome
    scores: Mapping[str, float] = field(default_factory=dict)
    reward: float | None = None
    failure: str | None = None
    judge_usage: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return it as one line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)


@dataclass(frozen=True)
class ConversationScorer:
    """Scores stored conversations.

    Attributes:
        choice: Metrics and weights.
        count_tokens: Length of a text in the policy's tokens.
        judge: For metrics that ask one.
        floor_margin: How far below the worst R* an unusable reply is.
    """

    choice: MetricChoice
    count_tokens: CountTokens
    judge: Judge | None
    floor_margin: float = 0.1

    async def score_all(
        self,
        conversations: Sequence[StoredConversation],
        at_once: int,
        scored: Callable[[], object],
    ) -> list[ScoredConversation]:
        """Return what each is worth, in the same order.

        Args:
            at_once: Most that are scored at the same time.
            scored: Called after each.
        """
        slots = asyncio.Semaphore(at_once)

        async def one(stored: StoredConversation) -> ScoredConversation:
            async with slots:
                result = await self.score(stored)
            scored()
            return result

        return list(await asyncio.gather(*map(one, conversations)))

    async def score(self, stored: StoredConversation) -> ScoredConversation:
        """Return what a conversation is worth."""
        left_out = ScoredConversation(
            stored.line, stored.k, stored.task.task_id, Outcome.LEFT_OUT, failure=stored.failure
        )
        if stored.failure is not None:
            return left_out
        if stored.fault is not None:
            floor = reply_floor(self.choice.metrics, self.choice.weights, self.floor_margin)
            return replace(left_out, outcome=Outcome.FLOOR, reward=floor)
        context = MetricContext(stored.given, self.count_tokens, seed=stored.seed)
        metrics, verdicts = self.choice.metrics, None
        if self.judge is not None:
            verdicts = judged(self.judge, stored.task, stored.conversation, metrics, context)
            context = replace(context, verdicts=verdicts)
        try:
            scores = await score_conversation(stored.task, stored.conversation, metrics, context)
        except MetricFailed as error:
            result = replace(left_out, failure=str(error))
        else:
            reward = conversation_reward(scores, self.choice.weights)
            result = replace(left_out, outcome=Outcome.SCORED, scores=scores, reward=reward)
        return replace(result, judge_usage=dict(verdicts.usage) if verdicts else {})
