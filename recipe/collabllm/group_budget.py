"""Where the replies of a group meet to share their futures, whichever process plays them.

Promises: every reply that reports gets an answer, at the latest `timeout_s` after the first of its
group reported; the answer to a reply does not change; a group's memory is freed.
Knows nothing of how futures are played, scored or shared out (reward/allocation.py).
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import ray

from reward.allocation import FuturePlan

logger = logging.getLogger(__name__)

# Replies that wait at once; Ray's own limit of 1,000 would keep the rest of a group out.
_MOST_WAITING = 100_000
# How many timeouts a group is remembered for replies that come late.
_TIMEOUTS_KEPT = 10


@dataclass
class _Group:
    """What is known of a group.

    Attributes:
        n: How many replies it has.
        reports: Stage one by reply: valid rewards, None for one that cannot be used.
        shares: Stage two's futures by reply, once decided.
        decided: Set when they are.
        answered: Replies that have their answer.
    """

    n: int
    reports: dict[int, tuple[float, ...] | None] = field(default_factory=dict)
    shares: dict[int, int] = field(default_factory=dict)
    decided: asyncio.Event = field(default_factory=asyncio.Event)
    answered: set[int] = field(default_factory=set)
    timer: asyncio.TimerHandle | None = None


class GroupBudget:
    """Hands out stage two of each group. One object serves all groups of a run.

    Attributes:
        plan: How futures are spent.
        timeout_s: Seconds a group waits for its last reply, from its first report.
    """

    def __init__(self, plan: FuturePlan, timeout_s: float) -> None:
        if not timeout_s > 0:
            raise ValueError(f"timeout_s={timeout_s}: must be positive")
        self.plan = plan
        self.timeout_s = timeout_s
        self._groups: dict[tuple[str, int], _Group] = {}

    async def share(
        self, uid: str, step: int, session: int, rewards: Sequence[float] | None, n: int
    ) -> int:
        """Report a reply's stage one; return how many more futures it plays.

        Waits for the other replies of the group. When the time is up those who came share what
        is sure to be left; who comes after that gets the minimum of one. A reply that reports
        again gets the same answer; after its whole group was answered and forgotten, it stands
        for a new group that nobody else joins.

        Args:
            uid: verl's id of the prompt.
            step: verl's step; with `uid` it names the group.
            session: Which of the n replies this is, 0 to n - 1.
            rewards: R* of its valid futures; None for a reply that cannot be used.
            n: Replies of the group.

        Raises:
            ValueError: If the report makes no sense; the group is not touched by it.
        """
        key = (uid, step)
        _check(session, rewards, n, self._groups.get(key))
        group = self._groups.get(key) or self._open(key, n)
        if not group.decided.is_set():
            group.reports.setdefault(session, None if rewards is None else tuple(rewards))
            if len(group.reports) == n:
                self._decide(group)
        await group.decided.wait()
        group.answered.add(session)
        if len(group.answered) == n:
            self._forget(key, group)
        return group.shares.get(session, 0 if rewards is None else 1)

    def groups(self) -> int:
        """Return how many groups are remembered."""
        return len(self._groups)

    def _open(self, key: tuple[str, int], n: int) -> _Group:
        group = self._groups[key] = _Group(n)
        group.timer = asyncio.get_running_loop().call_later(
            self.timeout_s, self._time_up, key, group
        )
        return group

    def _time_up(self, key: tuple[str, int], group: _Group) -> None:
        if not group.decided.is_set():
            logger.warning(
                "group %s of step %d: %d of %d replies came within %g s",
                *(*key, len(group.reports), group.n, self.timeout_s),
            )
            self._decide(group)
        group.timer = asyncio.get_running_loop().call_later(
            _TIMEOUTS_KEPT * self.timeout_s, self._forget, key, group
        )

    def _decide(self, group: _Group) -> None:
        came = sorted(group.reports)  # by index, not by who was first: the same every time
        stage_one = [group.reports[session] for session in came]
        try:
            shares = self.plan.shares(stage_one, absent=group.n - len(came))
            group.shares = dict(zip(came, shares, strict=True))
        finally:  # whatever happens, nobody waits for ever: without shares all get the minimum
            group.decided.set()

    def _forget(self, key: tuple[str, int], group: _Group) -> None:
        if group.timer:
            group.timer.cancel()
        if self._groups.get(key) is group:
            del self._groups[key]


def _check(session: int, rewards: Sequence[float] | None, n: int, group: _Group | None) -> None:
    if not 0 <= session < n:
        raise ValueError(f"session={session} is not one of {n} replies")
    if group and group.n != n:
        raise ValueError(f"n={n}, but the group has {group.n} replies")
    if not all(math.isfinite(reward) for reward in rewards or ()):
        raise ValueError(f"rewards must be finite, got {list(rewards or ())}")


@lru_cache(maxsize=4)
def shared_group_budget(plan: FuturePlan, timeout_s: float) -> Any:
    """Return the handle of the job's one `GroupBudget`, a Ray actor; whoever is first makes it.

    Ray ends it with the process that made it, or when that drops its handle: so the handle is
    kept here. `await handle.share.remote(...)` asks it.
    """
    name = f"collabllm-futures-{plan.mean}-{plan.first}-{plan.most}-{timeout_s:g}"
    actor = ray.remote(GroupBudget).options(
        name=name, get_if_exists=True, num_cpus=0, max_concurrency=_MOST_WAITING
    )
    return actor.remote(plan, timeout_s)
