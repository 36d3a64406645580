"""Limits over tasks, event loops and processes; killed holders."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from itertools import pairwise
from pathlib import Path

import pytest

from serving.call_limits import CallLimits
from tests.serving.fault_server import fault_server, slow
from tests.serving.limited_caller import call_many, hold_for_ever, note_starts

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.serving.limited_caller"])


async def take(limits: CallLimits, seconds: float = 5) -> None:
    """Hold a slot for a moment; fail if there is none within some seconds."""

    async def hold() -> None:
        async with limits.hold():
            pass

    await asyncio.wait_for(hold(), seconds)


async def most_at_once(limits: list[CallLimits], tasks: int) -> int:
    now = most = 0

    async def work(own: CallLimits) -> None:
        nonlocal now, most
        async with own.hold():
            now += 1
            most = max(most, now)
            await asyncio.sleep(0.005)
            now -= 1

    await asyncio.gather(*(work(own) for own in limits for _ in range(tasks)))
    return most


def test_tasks_fill_the_slots_and_no_more(tmp_path: Path) -> None:
    async def run() -> int:
        return await most_at_once([CallLimits(tmp_path, 4), CallLimits(tmp_path, 4)], 10)

    assert asyncio.run(run()) == 4


def test_waiters_of_a_loop_are_served_in_order(tmp_path: Path) -> None:
    async def run() -> list[int]:
        limits, served = CallLimits(tmp_path, 1), []

        async def work(name: int) -> None:
            async with limits.hold():
                served.append(name)
                await asyncio.sleep(0)

        await asyncio.gather(*map(work, range(6)))
        return served

    assert asyncio.run(run()) == list(range(6))


def test_a_cancelled_waiter_leaves_its_place_and_a_cancelled_holder_its_slot(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        limits = CallLimits(tmp_path, 1)

        async def hold() -> None:
            async with limits.hold():
                await asyncio.sleep(60)

        tasks = [asyncio.create_task(hold()) for _ in range(3)]
        await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await take(limits)

    asyncio.run(run())


def test_a_waiter_for_a_start_gives_its_slot_back_when_cancelled(tmp_path: Path) -> None:
    async def run() -> None:
        limits = CallLimits(tmp_path, 1, requests_per_minute=1)
        await take(limits)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(limits.hold().__aenter__(), 0.05)
        await take(CallLimits(tmp_path, 1))

    asyncio.run(run())


def test_waiting_does_not_block_the_event_loop(tmp_path: Path) -> None:
    async def run() -> int:
        limits, ticks = CallLimits(tmp_path, 1), 0
        async with limits.hold():
            waiter = asyncio.create_task(limits.hold().__aenter__())
            while ticks < 20:
                await asyncio.sleep(0.001)
                ticks += 1
            assert not waiter.done()
            waiter.cancel()
        return ticks

    assert asyncio.run(run()) == 20


@pytest.mark.parametrize("kept", ["", "no number", "99999999999"])
def test_a_spoiled_file_of_the_rate_or_a_clock_set_back_stops_nobody(
    tmp_path: Path, kept: str
) -> None:
    (tmp_path / "last-start").write_text(kept)
    asyncio.run(take(CallLimits(tmp_path, 1, 600)))


def test_eight_processes_together_never_make_more_calls_than_the_limit(tmp_path: Path) -> None:
    with fault_server(slow(0.1)) as server:
        config = {"model": "m", "base_url": server.url, "concurrency": 16, "limits_dir": tmp_path}
        workers = [PROCESSES.Process(target=call_many, args=(config, 10)) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        assert [worker.exitcode for worker in workers] == [0] * 8
    assert len(server.log.times) == 80
    assert 4 < server.log.most_in_flight <= 16


def test_a_killed_process_frees_its_slots(tmp_path: Path) -> None:
    held = PROCESSES.Event()
    holder = PROCESSES.Process(target=hold_for_ever, args=(tmp_path, 2, held))
    holder.start()
    assert held.wait(30)

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(take(CallLimits(tmp_path, 2), 0.2))
    os.kill(holder.pid or 0, signal.SIGKILL)
    holder.join(30)
    asyncio.run(take(CallLimits(tmp_path, 2)))


def test_the_rate_holds_over_two_processes(tmp_path: Path) -> None:
    folder, notes = tmp_path / "limits", tmp_path / "starts"
    workers = [
        PROCESSES.Process(target=note_starts, args=(folder, 600, 8, notes)) for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    starts = sorted(map(float, notes.read_text().split()))
    assert len(starts) == 16
    # A start is noted a little after it is given: late notes may come close, not crowd.
    assert starts[-1] - starts[0] > 15 * 0.1 - 0.05
    assert sum(later - earlier < 0.05 for earlier, later in pairwise(starts)) <= 3
