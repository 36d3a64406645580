"""`document_coverage`: does the final document have what was required?

The share of `task.metadata["required_points"]` that the last document the policy delivered
respects; 0 where it delivered none. A point is a text, or {"point": ..., "accepted": [...]}
with other wordings. By rule (the default) a point is respected if one of its wordings stands in
the document, whatever the case, punctuation and line breaks; that is for points that are
phrases. For points that have to be understood, `by: judge` asks which ones are respected and
counts itself: a judge counts badly, and a rubric that is the same for all tasks stays in an
endpoint's prefix cache. In 0..1.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Any, Literal

from interaction.conversation import Conversation
from interaction.task import Task
from reward.extraction import final_document, policy_texts
from reward.judge.question import JudgeFailed, Question, TextField
from reward.metric import MetricContext, MetricFailed, TaskUnfit
from reward.registry import register

KEY = "required_points"
COVERAGE = Question(
    name="document_coverage",
    instruction=(
        "Which of the required points does the assistant's final document respect? The final "
        "document is the last full version that the assistant wrote in the turns you judge; talk "
        "about it is no part of it. The reference numbers the points; `accepted`, where there is "
        "one, holds other wordings of a point. A point is respected if a careful reader finds "
        "what it asks for in the document, in any words; a promise to add it, or the opposite of "
        "it, is not enough."
    ),
    fields=(
        TextField(
            "respected",
            "the numbers of the respected points with commas between them, as in '1, 3', or "
            "'none' if no point is respected or there is no document",
            pattern=r"\s*(none|[0-9]{1,4}(\s*,\s*[0-9]{1,4})*)\s*",
        ),
    ),
    needs_metadata=(KEY,),
)


@register("document_coverage")
@dataclass(frozen=True)
class DocumentCoverage:
    """Share of the required points that the final document respects.

    Attributes:
        by: `rule`, or `judge`.
        question: What the judge is asked; only there with a judge, so that the metric is
            `Judged` only then.
    """

    by: Literal["rule", "judge"] = "rule"
    question: Question = field(init=False, repr=False, compare=False)

    range = (0.0, 1.0)

    def __post_init__(self) -> None:
        if self.by not in ("rule", "judge"):
            raise ValueError(
                f"metric 'document_coverage': by must be 'rule' or 'judge', got {self.by!r}"
            )
        if self.by == "judge":
            object.__setattr__(self, "question", COVERAGE)

    def check(self, task: Task) -> None:
        """Look at the required points; see `ChecksTask`."""
        required_points(task)

    async def score(self, task: Task, conversation: Conversation, context: MetricContext) -> float:
        """Return respected points over required ones.

        Raises:
            MetricFailed: If the task has no usable points, or the judge no usable verdict.
        """
        try:
            points = required_points(task)
        except TaskUnfit as error:
            raise MetricFailed(str(error)) from error
        document = final_document(policy_texts(conversation, context))
        if self.by == "judge":
            return await self._judged(document, len(points), context) / len(points)
        text = normalised(document or "")
        return sum(any(has(text, words) for words in point) for point in points) / len(points)

    async def _judged(self, document: str | None, count: int, context: MetricContext) -> int:
        if context.verdicts is None:
            raise MetricFailed("by: judge needs a judge, and none is configured; configure one")
        if document is None:
            return 0
        try:
            verdict = await context.verdicts.of(self.question)
        except JudgeFailed as error:
            raise MetricFailed(str(error)) from error
        numbers = {int(number) for number in re.findall("[0-9]+", str(verdict["respected"]))}
        if not numbers <= set(range(1, count + 1)):
            raise MetricFailed(f"the judge named points {sorted(numbers)} of {count}")
        return len(numbers)


def required_points(task: Task) -> list[list[str]]:
    """Return the wordings of each point that a task requires.

    Raises:
        TaskUnfit: If there are none, or one cannot be used.
    """
    points = task.metadata.get(KEY)
    if not isinstance(points, (list, tuple)) or not points:
        raise TaskUnfit(
            f"task {task.task_id!r}: document_coverage needs metadata[{KEY!r}], a list with a text "
            'or {"point": text, "accepted": [texts]} for each point; add it to the data set'
        )
    return [_wordings(task, number, point) for number, point in enumerate(points, 1)]


def _wordings(task: Task, number: int, point: Any) -> list[str]:
    accepted: Any = []
    if isinstance(point, dict):
        point, accepted = point.get("point"), point.get("accepted", [])
    wordings = [point, *accepted] if isinstance(accepted, (list, tuple)) else []
    texts = [text for text in wordings if isinstance(text, str) and normalised(text)]
    if not texts or len(texts) < len(wordings):
        raise TaskUnfit(
            f"task {task.task_id!r}: metadata[{KEY!r}], point {number}: a point and its accepted "
            "wordings must be texts with a letter or a number in them"
        )
    return texts


def normalised(text: str) -> str:
    """Return a text's words in one case with single spaces, without punctuation."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.findall(r"\w+", folded))


def has(text: str, words: str) -> bool:
    """Say whether a normalised text has words in a row."""
    return f" {normalised(words)} " in f" {text} "
