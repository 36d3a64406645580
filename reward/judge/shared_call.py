"""One call that many wait for.

Promises: it starts when the first one waits and runs once; who stops waiting disturbs nobody,
and when nobody waits any more it is given up. For one event loop.
Knows nothing of what is called.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class SharedCall(Generic[T]):
    """A call not yet made.

    Args:
        start: Makes it.
    """

    def __init__(self, start: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._start = start
        self._running: asyncio.Task[T] | None = None
        self._waiting = 0

    async def result(self) -> T:
        """Wait for the call, which the first to wait starts; raises what it raises."""
        if self._running is None:
            self._running = asyncio.create_task(self._start())
        running = self._running
        self._waiting += 1
        try:
            return await asyncio.shield(running)
        finally:
            self._waiting -= 1
            if not self._waiting and not running.done():
                running.cancel()
                self._running = None  # who asks later is not to get the cancellation

    @property
    def done(self) -> T | None:
        """What came of it, if it is over and gave something."""
        running = self._running
        if running is None or not running.done() or running.cancelled() or running.exception():
            return None
        return running.result()
