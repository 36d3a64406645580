"""A group's replies share their futures: interleaved, lost, late, repeated, and between processes."""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from recipe.collabllm.configuration import ray_folder
from recipe.collabllm.group_budget import GroupBudget, shared_group_budget
from reward.allocation import FuturePlan

PLAN = FuturePlan(mean=8, first=4, most=16)
SHORT_S = 0.05
LONG_S = 30.0
VARIES, SURE = (0.0, 1.0, 1.0, 0.0), (0.5,) * 4
EVEN = PLAN.mean - PLAN.first


async def report(
    budget: GroupBudget, session: int, rewards: Sequence[float] | None = SURE, n: int = 3
) -> int:
    return await budget.share("p", 1, session, rewards, n)


def test_a_group_is_answered_as_soon_as_all_have_come() -> None:
    async def play() -> list[int]:
        budget = GroupBudget(PLAN, LONG_S)
        shares = await asyncio.gather(
            *(report(budget, i, (VARIES, SURE, SURE, None)[i], n=4) for i in range(4))
        )
        assert budget.groups() == 0
        return shares

    began = time.monotonic()
    shares = asyncio.run(play())
    assert time.monotonic() - began < LONG_S / 2
    assert shares == PLAN.shares([VARIES, SURE, SURE, None])
    assert shares[0] > shares[1] and shares[3] == 0


def test_who_comes_first_makes_no_difference() -> None:
    async def play(order: list[int]) -> dict[int, int]:
        budget = GroupBudget(PLAN, LONG_S)
        calls = {
            i: asyncio.create_task(report(budget, i, (VARIES, VARIES, SURE)[i])) for i in order
        }
        return {i: await call for i, call in sorted(calls.items())}

    assert asyncio.run(play([0, 1, 2])) == asyncio.run(play([2, 0, 1]))


def test_two_hundred_groups_at_once_do_not_mix() -> None:
    n, chance = 5, random.Random(1)
    groups = {
        (f"p{i % 100}", i // 100): [
            chance.choice((None, (), (chance.random(), chance.random()))) for _ in range(n)
        ]
        for i in range(200)
    }
    replies = [(key, session) for key in groups for session in range(n)]
    chance.shuffle(replies)

    async def play() -> list[int]:
        budget = GroupBudget(PLAN, LONG_S)

        async def one(key: tuple[str, int], session: int, wait_s: float) -> int:
            await asyncio.sleep(wait_s)
            return await budget.share(*key, session, groups[key][session], n)

        shares = await asyncio.gather(*(one(*r, chance.random() * 0.2) for r in replies))
        assert budget.groups() == 0
        return shares

    shares = dict(zip(replies, asyncio.run(play()), strict=True))
    for key, stage_one in groups.items():
        assert [shares[key, session] for session in range(n)] == PLAN.shares(stage_one)


def test_a_lost_reply_keeps_nobody_waiting_and_leaves_its_own_minimum() -> None:
    async def play() -> list[int]:
        budget = GroupBudget(PLAN, SHORT_S)
        return await asyncio.gather(report(budget, 0, VARIES), report(budget, 2))

    shares = asyncio.run(play())
    assert shares == PLAN.shares([VARIES, SURE], absent=1)
    assert sum(shares) + 2 * PLAN.first + (PLAN.first + 1) == 3 * PLAN.mean


def test_late_replies_get_the_minimum_at_once() -> None:
    async def play() -> None:
        budget = GroupBudget(PLAN, SHORT_S)
        await report(budget, 0)
        late = asyncio.create_task(report(budget, 1, VARIES))
        await asyncio.sleep(0)
        assert late.done() and late.result() == 1
        assert budget.groups() == 1
        assert await report(budget, 2, None) == 0
        assert budget.groups() == 0

    asyncio.run(play())


@pytest.mark.timeout(60)
def test_a_group_that_never_comes_together_is_forgotten() -> None:
    async def play() -> None:
        budget = GroupBudget(PLAN, 0.01)
        await report(budget, 0)
        assert budget.groups() == 1
        while budget.groups():  # the test's own time limit ends it if that never comes
            await asyncio.sleep(0.01)

    asyncio.run(play())


def test_a_reply_that_reports_twice_counts_once_and_its_first_report_stands() -> None:
    async def play() -> list[int]:
        budget = GroupBudget(PLAN, LONG_S)
        calls = [
            asyncio.create_task(report(budget, *said))
            for said in ((0, VARIES), (0, SURE), (1, SURE))
        ]
        await asyncio.sleep(0)
        assert not any(call.done() for call in calls)
        return [*await asyncio.gather(*calls, report(budget, 2))]

    a, a_again, b, c = asyncio.run(play())
    assert a == a_again and [a, b, c] == PLAN.shares([VARIES, SURE, SURE])


def test_a_reply_that_repeats_itself_after_its_group_is_gone_still_gets_an_answer() -> None:
    async def play() -> int:
        budget = GroupBudget(PLAN, SHORT_S)
        await asyncio.gather(*(report(budget, i) for i in range(3)))
        return await report(budget, 1)

    assert 1 <= asyncio.run(play()) <= PLAN.most - PLAN.first


def test_a_reply_cancelled_while_it_waits_takes_nobody_with_it() -> None:
    async def play() -> list[int]:
        budget = GroupBudget(PLAN, LONG_S)
        cancelled, other = (asyncio.create_task(report(budget, i)) for i in range(2))
        await asyncio.sleep(0)
        cancelled.cancel()
        return await asyncio.gather(other, report(budget, 2))

    assert asyncio.run(play()) == [EVEN] * 2


@pytest.mark.parametrize(
    "session, rewards, n",
    [(3, SURE, 3), (-1, SURE, 3), (1, (float("nan"),), 3), (1, SURE, 4)],
)
def test_a_report_that_makes_no_sense_is_refused_and_the_group_goes_on(
    session: int, rewards: tuple[float, ...], n: int
) -> None:
    async def play() -> list[int]:
        budget = GroupBudget(PLAN, LONG_S)
        first = asyncio.create_task(report(budget, 0))
        await asyncio.sleep(0)
        with pytest.raises(ValueError):
            await report(budget, session, rewards, n)
        return await asyncio.gather(first, report(budget, 1), report(budget, 2))

    assert asyncio.run(play()) == [EVEN] * 3


def test_rewards_too_large_to_reckon_with_leave_nobody_waiting() -> None:
    async def play() -> list[int | BaseException]:
        budget = GroupBudget(PLAN, LONG_S)
        huge = (1e300, -1e300, 1e300, -1e300)
        calls = (report(budget, i, huge) for i in range(3))
        return await asyncio.gather(*calls, return_exceptions=True)

    *others, last = asyncio.run(play())
    assert others == [1, 1] and isinstance(last, OverflowError)


def test_a_group_spread_over_processes_shares_one_budget(tmp_path: Path) -> None:
    import ray

    class Worker:
        async def play(self, uid: str, sessions: list[int], timeout_s: float) -> list[int]:
            budget = shared_group_budget(PLAN, timeout_s)
            said = [(VARIES, SURE, SURE, None)[i] for i in sessions]
            calls = (
                budget.share.remote(uid, 1, i, rewards, 4)
                for i, rewards in zip(sessions, said, strict=True)
            )
            return list(await asyncio.gather(*calls))

    folder = ray_folder(tmp_path)
    ray.init(
        num_cpus=1,
        include_dashboard=False,
        object_store_memory=80_000_000,
        _temp_dir=str(folder),
        log_to_driver=False,
    )
    try:
        workers = [ray.remote(num_cpus=0)(Worker).remote() for _ in range(2)]
        calls = [w.play.remote("whole", [i, i + 2], 200.0) for i, w in enumerate(workers)]
        (a, c), (b, d) = ray.get(calls, timeout=240)
        assert [a, b, c, d] == PLAN.shares([VARIES, SURE, SURE, None])
        lost = workers[0].play.remote("lost", [0, 1], 1.0)
        assert ray.get(lost, timeout=60) == PLAN.shares([VARIES, SURE], absent=2)
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)
