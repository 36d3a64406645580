"""The policy's side of a conversation, as everybody else sees it.

Promises: one call, one turn; inside verl it is token in, token out, elsewhere an endpoint or
the embedded engine.
Knows nothing of training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from interaction.conversation import Conversation, StopReason


@dataclass(frozen=True)
class PolicyTurn:
    """What the policy said.

    Attributes:
        text: The turn, without special tokens.
        token_ids: The generated ids, in the policy's own tokens.
        log_probs: One a token, or empty where the policy does not give them.
        finished: False if the token budget cut it.
        malformed: True if it holds special tokens other than its end.
    """

    text: str
    token_ids: tuple[int, ...] = ()
    log_probs: tuple[float, ...] = ()
    finished: bool = True
    malformed: bool = False

    @property
    def fault(self) -> StopReason | None:
        """Why a conversation cannot go on from this turn; None if it can."""
        if not self.finished:
            return StopReason.LENGTH
        if self.malformed or not self.text.strip():
            return StopReason.POLICY_INVALID
        return None


class Policy(Protocol):
    """Anything that can take the assistant's next turn."""

    async def reply(self, conversation: Conversation, max_tokens: int, seed: int) -> PolicyTurn:
        """Take the assistant's turn at the end of `conversation`.

        Args:
            conversation: Ends with a user turn.
            max_tokens: This turn's own budget.
            seed: Same seed, same turn, where the policy allows it.
        """
        ...
