"""Plays the futures of a reply that is already there, for any policy.

Promises: a future is played, or failed with its reason; one whose user failed is played again
with the same person; all of its tries are paid for. Knows nothing of scores, files or verl.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace

from interaction.chat import ChatFailed
from interaction.conversation import Conversation
from interaction.future import Future, sample_future
from interaction.policy import Policy
from interaction.seeds import again_seed, derive_seed
from interaction.task import Task
from interaction.user import SimulatedUser, SimulatorFailed
from recipe.collabllm.record import FutureRecord
from recipe.collabllm.settings import Settings


@dataclass(frozen=True)
class FuturePlayer:
    """Who plays, and how far.

    Attributes:
        policy: Takes the assistant's turns.
        user: Takes the user's.
        settings: Window, budgets, and how often a future is played again.
        count_tokens: Length of a turn where the policy tells no tokens.
        slots: Bounds how many futures are played at the same time; None for no bound.
    """

    policy: Policy
    user: SimulatedUser
    settings: Settings
    count_tokens: Callable[[str], int]
    slots: asyncio.Semaphore | None = None

    async def play(
        self, task: Task, conversation: Conversation, record: FutureRecord
    ) -> FutureRecord:
        """Return the record with what was played.

        Args:
            conversation: Ends with the reply.
            record: Holds the seeds.
        """
        async with self.slots or nullcontext():
            played = await self._once(task, conversation, record)
            for resample in range(self.settings.max_resamples):
                # A policy's call has had all its tries: its client does that.
                if played.failure is None or not played.failure.startswith("user: "):
                    break
                again = replace(
                    record,
                    # Not one that the guarded user has tried already.
                    user_seed=again_seed(record.user_seed, self.settings.user_attempts + resample),
                    policy_seed=derive_seed(record.policy_seed, "again"),
                    usage=played.usage,
                    resamples=resample + 1,
                )
                record, played = again, await self._once(task, conversation, again)
            return played

    async def _once(
        self, task: Task, conversation: Conversation, record: FutureRecord
    ) -> FutureRecord:
        """Play a future once; what earlier tries of it cost is in `record`."""
        began = time.perf_counter()
        try:
            future = await sample_future(
                self.policy,
                self.user,
                task,
                conversation,
                window=self.settings.window,
                max_tokens=self.settings.max_future_tokens,
                user_seed=record.user_seed,
                policy_seed=record.policy_seed,
            )
        except SimulatorFailed as error:
            return record.user_failed(error)
        except ChatFailed as error:
            return record.failed(f"policy: {error}")
        played = record.played(future, len(conversation.messages), time.perf_counter() - began)
        return replace(played, policy_tokens=self._policy_tokens(future))

    def _policy_tokens(self, future: Future) -> int:
        return sum(
            len(turn.token_ids) or self.count_tokens(turn.text) for turn in future.policy_turns
        )
