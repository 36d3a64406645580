"""One call that many wait for."""

from __future__ import annotations

import asyncio

import pytest

from reward.judge.shared_call import SharedCall


class Slow:
    """Counts how often it was started and finished."""

    def __init__(self, error: Exception | None = None) -> None:
        self.started = self.finished = 0
        self.error = error

    async def __call__(self) -> int:
        self.started += 1
        await asyncio.sleep(0.02)
        self.finished += 1
        if self.error:
            raise self.error
        return 7


async def waiters(call: SharedCall[int], n: int) -> list[asyncio.Task[int]]:
    tasks = [asyncio.create_task(call.result()) for _ in range(n)]
    await asyncio.sleep(0.005)
    return tasks


async def test_runs_once_for_all_and_for_those_who_ask_later() -> None:
    slow = Slow()
    call = SharedCall(slow)
    assert call.done is None and not slow.started
    assert await asyncio.gather(*await waiters(call, 3)) == [7, 7, 7]
    assert await call.result() == 7 == call.done
    assert slow.started == 1


async def test_who_is_cancelled_disturbs_nobody() -> None:
    slow = Slow()
    first, second = await waiters(SharedCall(slow), 2)
    first.cancel()
    assert await second == 7
    assert first.cancelled() and slow.started == slow.finished == 1


async def test_is_given_up_when_nobody_waits_and_can_start_again() -> None:
    slow = Slow()
    call = SharedCall(slow)
    for waiter in await waiters(call, 2):
        waiter.cancel()
    await asyncio.sleep(0.05)
    assert slow.finished == 0 and call.done is None
    assert await call.result() == 7 and slow.started == 2


async def test_everybody_gets_its_error() -> None:
    call = SharedCall(Slow(OSError("gone")))
    results = await asyncio.gather(*await waiters(call, 2), return_exceptions=True)
    assert [str(result) for result in results] == ["gone", "gone"] and call.done is None


pytestmark = pytest.mark.asyncio
