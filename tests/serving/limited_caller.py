"""What other processes run in the tests of limits: many calls at once, or a slot held for good."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from interaction.conversation import Message
from serving.call_limits import CallLimits
from serving.chat_client import connect


def call_many(config: dict[str, Any], calls: int) -> None:
    """Make calls, all at once as far as the limits allow."""

    async def run() -> None:
        client = connect(config, "user")
        question = [Message("user", "hi")]
        await asyncio.gather(*(client.complete(question, seed=i) for i in range(calls)))

    asyncio.run(run())


def hold_for_ever(folder: Path, slots: int, held: Any) -> None:
    """Take all slots, say so, and keep them."""

    async def run() -> None:
        async with AsyncExitStack() as stack:
            for _ in range(slots):
                await stack.enter_async_context(CallLimits(folder, slots).hold())
            held.set()
            await asyncio.sleep(60)

    asyncio.run(run())


def note_starts(folder: Path, rate: float, starts: int, path: Path) -> None:
    """Write down when each start was given."""

    async def run() -> None:
        limits = CallLimits(folder, starts, rate)
        for _ in range(starts):
            async with limits.hold():
                with path.open("a") as file:
                    file.write(f"{time.time()}\n")

    asyncio.run(run())
