"""`token_amount`: what the policy's words cost the user, -min(lam * tokens, 1).

The intrinsic cost of arXiv 2502.00640 Eq. 3, counted in the policy's own tokens over the turns
that the policy wrote, per conversation. In -1..0; a `lam` that saturates at 1 tells long
conversations apart no more.
"""

from __future__ import annotations

from dataclasses import dataclass

from interaction.conversation import Conversation
from interaction.task import Task
from reward.metric import MetricContext
from reward.registry import register


@register("token_amount")
@dataclass(frozen=True)
class TokenAmount:
    """Cost of the policy's tokens.

    Attributes:
        lam: Cost per token, greater than 0.
    """

    lam: float = 5e-4

    range = (-1.0, 0.0)

    def __post_init__(self) -> None:
        if not self.lam > 0:
            raise ValueError(f"metric 'token_amount': lam must be greater than 0, got {self.lam}")

    async def score(self, task: Task, conversation: Conversation, context: MetricContext) -> float:
        """Return the capped cost."""
        tokens = sum(
            context.count_tokens(conversation.messages[position].content)
            for position in context.policy_turns(conversation)
        )
        return -min(self.lam * tokens, 1.0)
