"""`bleu`: how near is the document the policy finally wrote to the reference?

Sentence BLEU of sacrebleu over words (not characters, where reversed words score 0.9), because
a conversation has one document and there is no corpus to pool counts over; n-grams without a
match are smoothed (`exp`), and texts of less than four words are scored by the orders they have.
In 0..1, which is sacrebleu's 0..100. The reference is the task's `ground_truth`, or
`metadata["document"]` where that is empty. No document delivered: 0.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal, get_args

from sacrebleu.metrics.bleu import BLEU

from interaction.conversation import Conversation
from interaction.task import Task
from reward.extraction import final_document, policy_texts
from reward.metric import MetricContext, MetricFailed, TaskUnfit
from reward.registry import register

Words = Literal["13a", "intl", "zh"]


@register("bleu")
@dataclass(frozen=True)
class Bleu:
    """BLEU of the final document.

    Attributes:
        words: sacrebleu's way to find them: "13a" for languages with spaces, "intl" for the same
            with more of Unicode's punctuation, "zh" for Chinese.
    """

    words: Words = "13a"

    range = (0.0, 1.0)

    def __post_init__(self) -> None:
        if self.words not in get_args(Words):
            choices = ", ".join(get_args(Words))
            raise ValueError(f"metric 'bleu': words must be one of {choices}, got {self.words!r}")

    def check(self, task: Task) -> None:
        """Look for a reference document.

        Raises:
            TaskUnfit: If there is none.
        """
        _reference(task)

    async def score(self, task: Task, conversation: Conversation, context: MetricContext) -> float:
        """Compare the final document with the reference, in 0..1.

        Raises:
            MetricFailed: If there is no reference or no policy turn.
        """
        try:
            reference = _reference(task)
        except TaskUnfit as error:
            raise MetricFailed(str(error)) from error
        texts = policy_texts(conversation, context)
        if not texts:
            raise MetricFailed("the conversation has no policy turn")
        document = final_document(texts)
        return await asyncio.to_thread(self._bleu, document, reference) if document else 0.0

    def _bleu(self, document: str, reference: str) -> float:
        bleu = BLEU(tokenize=self.words, effective_order=True)
        return min(float(bleu.sentence_score(document, [reference]).score) / 100, 1.0)


def _reference(task: Task) -> str:
    reference = task.ground_truth or task.metadata.get("document")
    if not isinstance(reference, str) or not reference.strip():
        raise TaskUnfit(
            f"task {task.task_id!r}: the metric 'bleu' needs a reference text in ground_truth or "
            "metadata['document']; give the data one, or leave 'bleu' out of collabllm.metrics"
        )
    return reference
