"""Limits on calls that hold over all processes of a machine together, kept in one folder.

Promises: never more calls in flight than slots, never more starts than the rate allows; a
holder that is killed frees its slot, because the kernel drops its file lock; the event loop is
never blocked. Knows nothing of what is called.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

POLL_S = (0.005, 0.05)  # drawn anew each time, so that no process is always first


class CallLimits:
    """Slots and a minute rate; one object per event loop, one folder for all.

    Args:
        folder: Shared by all who keep the limits together; on a local disk.
        concurrency: Slots in the folder.
        requests_per_minute: Starts a minute, evenly spaced; None for no limit.
    """

    def __init__(
        self, folder: Path, concurrency: int, requests_per_minute: float | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._slots = [folder / f"slot-{index}" for index in range(concurrency)]
        self._last_start = folder / "last-start"
        self._interval = 60.0 / requests_per_minute if requests_per_minute else 0.0
        # Waiters of one loop queue here: first come, first served, and only one of them polls.
        self._queue = asyncio.Lock()

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Hold a slot for the time of a `with` block; wait until there is one."""
        async with self._queue:
            slot = await self._take_slot()
            try:
                await self._take_start()
            except BaseException:
                os.close(slot)
                raise
        try:
            yield
        finally:
            os.close(slot)

    async def _take_slot(self) -> int:
        while True:
            for path in random.sample(self._slots, len(self._slots)):
                if (slot := _try_lock(path)) is not None:
                    return slot
            await asyncio.sleep(random.uniform(*POLL_S))

    async def _take_start(self) -> None:
        while self._interval and (wait := self._until_start()) > 0:
            await asyncio.sleep(wait + random.uniform(0, min(POLL_S[1], 0.1 * self._interval)))

    def _until_start(self) -> float:
        """Take the next start if it is due; else return the seconds until then."""
        file = _try_lock(self._last_start)
        if file is None:
            return random.uniform(*POLL_S)
        try:
            now = time.time()
            since = now - _read_time(file)
            if 0 <= since < self._interval:  # below 0, the clock was set back
                return self._interval - since
            os.pwrite(file, f"{now:020.6f}".encode(), 0)
            return 0.0
        finally:
            os.close(file)


def _try_lock(path: Path) -> int | None:
    # flock and not lockf: it belongs to the opened file, so two tasks of a process exclude
    # each other too, and closing the file is all it takes to free it.
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    except BaseException:
        os.close(file)
        raise
    return file


def _read_time(file: int) -> float:
    try:
        return float(os.pread(file, 64, 0))
    except ValueError:  # a new file, or one whose writer was killed
        return 0.0
