"""`interactivity_rule`: does the policy ask for what is missing, and only for that?

Each policy turn is worth, while facts are missing: 0 without a question, a little for asking
anything, most for asking what the user knows and has not told; the value is averaged over the
turn's questions, so re-asking, guesswork and a list of questions cost precision. Once
everything is told, asking is worth 0 and not asking 1. The score is the mean over the policy's
turns. In 0..1. The steps between no question, any question and a good one are there because a
model that hardly ever asks needs a first signal.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from interaction.agenda import Standing, questions_for, stand
from interaction.conversation import Conversation
from interaction.questions import Question
from interaction.task import Goal, Task
from reward.metric import MetricContext, MetricFailed
from reward.registry import register


@register("interactivity_rule")
@dataclass(frozen=True)
class InteractivityRule:
    """How well the policy's turns ask.

    Attributes:
        any_question: What a turn is worth for asking at all, in 0..1.
        indifferent: What a question is worth that asks for something about the task that the
            user has no preference on, in 0..1 of a good question.
        max_questions: More questions than this in one turn shrink its worth in proportion.
    """

    any_question: float = 0.25
    indifferent: float = 0.5
    max_questions: int = 3

    range = (0.0, 1.0)

    async def score(self, task: Task, conversation: Conversation, context: MetricContext) -> float:
        """Return the mean worth of the policy's turns."""
        positions = context.policy_turns(conversation)
        if not positions:
            raise MetricFailed("the conversation has no policy turn")
        return fmean(
            self._turn(
                task.goal,
                stand(task.goal, conversation.messages[:position]),
                conversation.messages[position].content,
            )
            for position in positions
        )

    def _turn(self, goal: Goal, standing: Standing, text: str) -> float:
        questions = questions_for(goal, text)
        if standing.answer_due:
            return 0.0 if questions else 1.0
        if not questions:
            return 0.0
        precision = fmean(
            self._worth(q, goal, standing, questions[:i]) for i, q in enumerate(questions)
        )
        spread = min(1.0, self.max_questions / len(questions))
        return spread * (self.any_question + (1 - self.any_question) * precision)

    def _worth(
        self, question: Question, goal: Goal, standing: Standing, earlier: tuple[Question, ...]
    ) -> float:
        asked = standing.asked.union(*(other.slots for other in earlier))
        new = [slot for slot in question.slots if slot not in asked]
        missing = {fact.slot for fact in standing.missing}
        if any(slot in missing for slot in new):
            return 1.0
        return self.indifferent if any(slot in goal.indifferent for slot in new) else 0.0
