"""A user that is given time, a budget and a second chance.

Promises: a call that takes too long or says too much is a failure; a failure is tried again
and then raised, never turned into a turn. Knows nothing of why a user fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from interaction.conversation import Conversation
from interaction.seeds import again_seed
from interaction.task import Task
from interaction.user import SimulatedUser, SimulatorFailed, UserTurn, add_usage


@dataclass(frozen=True)
class GuardedUser:
    """Wraps a simulated user.

    Attributes:
        user: The user itself.
        count_tokens: Length of a text in the policy's tokens.
        max_tokens: A turn's own budget in those tokens.
        timeout_s: Seconds one call may take.
        attempts: Calls before giving up, at least 1. Each has a seed of its own, so that a
            deterministic user gets the chance to say something else, as the same person.
    """

    user: SimulatedUser
    count_tokens: Callable[[str], int]
    max_tokens: int
    timeout_s: float
    attempts: int = 2

    async def reply(self, task: Task, conversation: Conversation, seed: int) -> UserTurn:
        """Take the user's turn.

        Raises:
            SimulatorFailed: If no attempt gives a usable turn; it tells the last reason.
        """
        failure = SimulatorFailed("no attempt was made")
        spent: dict[str, float] = {}
        for attempt in range(self.attempts):
            try:
                own_seed = again_seed(seed, attempt) if attempt else seed
                turn = await self._try(task, conversation, own_seed)
                return replace(turn, usage=add_usage(spent, turn.usage))
            except SimulatorFailed as error:
                failure, spent = error, add_usage(spent, error.usage)
        raise SimulatorFailed(str(failure), spent) from failure

    async def _try(self, task: Task, conversation: Conversation, seed: int) -> UserTurn:
        try:
            call = self.user.reply(task, conversation, seed)
            turn = await asyncio.wait_for(call, self.timeout_s)
        except (asyncio.TimeoutError, TimeoutError) as error:
            raise SimulatorFailed(f"no turn within {self.timeout_s:g} s") from error
        length = self.count_tokens(turn.text)
        if length > self.max_tokens:
            reason = f"a turn of {length} tokens, over the budget {self.max_tokens}"
            raise SimulatorFailed(reason, turn.usage)
        return turn
