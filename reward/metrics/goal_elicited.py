"""`goal_elicited`: how much of what the user knows did the conversation bring out?

A model that answers at once leaves the user's facts where they are; one that asks gets them.
Counts every fact the user has told by the end, by rule, so that guessing right is worth
nothing. In 0..1; 1 where there was nothing to tell.
"""

from __future__ import annotations

from dataclasses import dataclass

from interaction.agenda import stand
from interaction.conversation import Conversation
from interaction.task import Task
from reward.metric import MetricContext
from reward.registry import register


@register("goal_elicited")
@dataclass(frozen=True)
class GoalElicited:
    """Share of the user's facts that were told."""

    range = (0.0, 1.0)

    async def score(self, task: Task, conversation: Conversation, context: MetricContext) -> float:
        """Return told facts over all facts."""
        if not task.goal.facts:
            return 1.0
        return len(stand(task.goal, conversation.messages).told) / len(task.goal.facts)
