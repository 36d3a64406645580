"""`accuracy`: is the answer the policy finally gave right? By rule; by a judge where none decides.

The answer is the last one over all the policy's turns (reward/extraction/answer.py), so "You're
welcome!" loses nothing and a revision counts. Rules (reward/answer_equality.py) compare it with
the task's `ground_truth`. No answer, or words where the truth is a number, is wrong, unless there
is a judge to ask. In {0, 1}.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from interaction.conversation import Conversation
from interaction.task import Task
from reward.answer_equality import NoRule, check_reference, same_answer
from reward.extraction import final_answer, policy_texts
from reward.formula_worker import TooSlow
from reward.judge.question import JudgeFailed, Question, ScoreField
from reward.metric import MetricContext, MetricFailed, TaskUnfit
from reward.registry import register

QUESTION = Question(
    name="accuracy",
    instruction=(
        "Compare the answer the assistant finally gives with the reference answer. What counts is "
        "the last answer the assistant stands by, over all its turns: a revision replaces what "
        "came before, and an answer that only the user says is none."
    ),
    fields=(
        ScoreField(
            name="correct",
            meaning=(
                "1 if the final answer says the same as the reference, however it is worded; "
                "0 if it says something else, or if there is no answer."
            ),
        ),
    ),
    needs_truth=True,
)


@register("accuracy")
@dataclass(frozen=True)
class Accuracy:
    """1 if the final answer is the ground truth, else 0.

    Attributes:
        judge: Ask the judge where no rule decides: the ground truth is prose or cannot be
            parsed, or the answer is prose or missing.
        question: What the judge is asked; there only with `judge`.
    """

    judge: bool = False
    # Without a judge there is no such attribute, so that the metric is not `Judged`.
    question: Question = field(init=False, repr=False, compare=False)

    range = (0.0, 1.0)

    def __post_init__(self) -> None:
        if self.judge:
            object.__setattr__(self, "question", QUESTION)

    def check(self, task: Task) -> None:
        """Look for a ground truth that answers can be compared with.

        Raises:
            TaskUnfit: If it is empty, or no rule can compare with it and there is no judge.
        """
        if not task.ground_truth.strip():
            raise TaskUnfit(_unfit(task, "it is empty"))
        try:
            check_reference(task.ground_truth)
        except NoRule as error:
            if not self.judge:
                raise TaskUnfit(_unfit(task, str(error))) from error

    async def score(self, task: Task, conversation: Conversation, context: MetricContext) -> float:
        """Compare the final answer with the ground truth.

        Raises:
            MetricFailed: If there is no policy turn, no ground truth to compare with, or the
                judge fails.
        """
        texts = policy_texts(conversation, context)
        if not texts:
            raise MetricFailed("the conversation has no policy turn")
        if not task.ground_truth.strip():
            raise MetricFailed(_unfit(task, "it is empty"))
        try:
            same = await asyncio.to_thread(_same, task.ground_truth, final_answer(texts))
        except NoRule as error:
            if not self.judge:
                raise MetricFailed(_unfit(task, str(error))) from error
            same = None
        except TooSlow as error:
            raise MetricFailed(str(error)) from error
        return await self._judged(context) if same is None and self.judge else float(bool(same))

    async def _judged(self, context: MetricContext) -> float:
        if context.verdicts is None:
            raise MetricFailed("no rule decides, and there is no judge: configure one")
        try:
            verdict = await context.verdicts.of(self.question)
        except JudgeFailed as error:
            raise MetricFailed(str(error)) from error
        return float(float(verdict["correct"]) >= 0.5)


def _same(truth: str, answer: str | None) -> bool | None:
    check_reference(truth)
    return None if answer is None else same_answer(truth, answer)


def _unfit(task: Task, reason: str) -> str:
    return (
        f"task {task.task_id!r}: the metric 'accuracy' cannot use ground_truth "
        f"{task.ground_truth[:80]!r}: {reason}; put the bare answer there, set judge: true for "
        "answers in prose, or leave 'accuracy' out of collabllm.metrics"
    )
