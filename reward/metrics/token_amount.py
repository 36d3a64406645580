"""`token_amount`: what a conversation's words cost the user, -min(lam * tokens, 1).

The intrinsic cost of arXiv 2502.00640 Eq. 3: the tokens that the user reads and writes, counted
per conversation with the policy's tokenizer. What was given before the policy spoke is the same
for all replies to a prompt and not counted. In -1..0; at -1 the cap is reached, and longer
conversations are told apart no more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from interaction.conversation import Conversation
from interaction.spoken import without_thinking
from interaction.task import Task
from reward.metric import MetricContext
from reward.registry import register

Counted = Literal["read_and_written", "policy"]


@register("token_amount")
@dataclass(frozen=True)
class TokenAmount:
    """Cost of a conversation's tokens.

    Attributes:
        lam: Cost per token, finite and greater than 0.
        tokens: Whose. "read_and_written": the policy's turns as the user hears them, without
            thinking, and the user's own. "policy": the policy's turns as they were generated,
            thinking included.
    """

    lam: float = 5e-4
    tokens: Counted = "read_and_written"

    range = (-1.0, 0.0)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.lam) and self.lam > 0):
            raise ValueError(f"metric 'token_amount': lam must be greater than 0, got {self.lam}")
        if self.tokens not in get_args(Counted):
            choices = " or ".join(get_args(Counted))
            raise ValueError(
                f"metric 'token_amount': tokens must be {choices}, got {self.tokens!r}"
            )

    async def score(self, task: Task, conversation: Conversation, context: MetricContext) -> float:
        """Return the capped cost, in -1..0."""
        tokens = sum(map(context.count_tokens, self._texts(conversation, context)))
        return -min(self.lam * tokens, 1.0)

    def _texts(self, conversation: Conversation, context: MetricContext) -> Iterator[str]:
        for message in conversation.messages[context.given :]:
            if message.role == "assistant":
                whole = self.tokens == "policy"
                yield message.content if whole else without_thinking(message.content)
            elif message.role == "user" and self.tokens == "read_and_written":
                yield message.content
