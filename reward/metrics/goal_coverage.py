"""`goal_coverage`: does the final answer respect what the user told?

The final answer is the last assistant turn, once an answer was due: nothing was left to tell,
or the user said "that is all". Before that there is no answer to score, so 0: an early plan
earns nothing for facts it happened to hit. Only told facts count. In 0..1.
"""

from __future__ import annotations

from dataclasses import dataclass

from interaction.agenda import respects, stand
from interaction.conversation import Conversation
from interaction.questions import questions_in
from interaction.task import Task
from reward.metric import MetricContext
from reward.registry import register


@register("goal_coverage")
@dataclass(frozen=True)
class GoalCoverage:
    """Share of the told facts that the final answer respects."""

    range = (0.0, 1.0)

    async def score(self, task: Task, conversation: Conversation, context: MetricContext) -> float:
        """Return respected facts over told facts in the last due answer."""
        positions = context.policy_turns(conversation)
        if not positions:
            return 0.0
        standing = stand(task.goal, conversation.messages[: positions[-1]])
        answer = conversation.messages[positions[-1]].content
        if not standing.answer_due or not standing.told:
            return 0.0
        # Repeating the facts inside a question ("So, for 4 people?") is not an answer.
        for question in questions_in(answer, {}):
            answer = answer.replace(question.text, " ")
        return sum(respects(fact, answer) for fact in standing.told) / len(standing.told)
