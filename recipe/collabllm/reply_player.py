"""From a given reply to its record: futures played, then scored.

Promises: all futures of all replies are played at once, within the player's slots; an unusable
reply costs no call. Knows nothing of files and terminals.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from recipe.collabllm.future_player import FuturePlayer
from recipe.collabllm.given_reply import GivenReply
from recipe.collabllm.record import ReplyRecord
from recipe.collabllm.scoring import ReplyScorer


@dataclass(frozen=True)
class ReplyPlayer:
    """Plays and scores replies.

    Attributes:
        player: Of one future.
        scorer: Of a reply with its futures.
        K: Futures of a reply.
        seed: Of all that is played.
    """

    player: FuturePlayer
    scorer: ReplyScorer
    K: int
    seed: int

    async def play_all(
        self, replies: Sequence[GivenReply], done: Callable[[ReplyRecord], object]
    ) -> None:
        """Play and score replies at once.

        Args:
            done: Given each record as soon as it is scored.
        """

        async def one(reply: GivenReply) -> None:
            done(await self.scorer.score(reply.task, await self.played(reply)))

        await asyncio.gather(*map(one, replies))

    async def played(self, reply: GivenReply) -> ReplyRecord:
        """Return the record of a reply with its futures, none for one that is unusable."""
        record = reply.record(self.player.count_tokens(reply.turn.text))
        if record.fault:
            return record
        futures = await asyncio.gather(
            *(
                self.player.play(reply.task, reply.conversation, future)
                for future in reply.futures(self.seed, self.K)
            )
        )
        return replace(record, futures=list(futures))
