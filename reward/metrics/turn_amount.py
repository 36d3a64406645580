"""`turn_amount`: what the conversation costs the user in turns, -min(lam * user_turns, 1).

A user turn counts if it came after the messages that were given, so that the n replies to one
prompt are charged only for what followed them. In -1..0; at -1 the cap is reached, and longer
conversations are told apart no more (10 turns with the default `lam`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from interaction.conversation import Conversation
from interaction.task import Task
from reward.metric import MetricContext
from reward.registry import register


@register("turn_amount")
@dataclass(frozen=True)
class TurnAmount:
    """Cost of the user's turns.

    Attributes:
        lam: Cost per user turn, finite and greater than 0.
    """

    lam: float = 0.1

    range = (-1.0, 0.0)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.lam) and self.lam > 0):
            raise ValueError(f"metric 'turn_amount': lam must be greater than 0, got {self.lam}")

    async def score(self, task: Task, conversation: Conversation, context: MetricContext) -> float:
        """Return the capped cost, in -1..0."""
        turns = sum(m.role == "user" for m in conversation.messages[context.given :])
        return -min(self.lam * turns, 1.0)
