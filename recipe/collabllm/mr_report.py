"""What the multiturn-aware rewards of given replies come to, for a terminal.

Promises: pure; a reply without a number shows why, never a number. Knows nothing of how futures
are played.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from rich.table import Column, Table
from rich.text import Text

from interaction.user import add_usage
from recipe.collabllm.chat_user import plain
from recipe.collabllm.record import Outcome, ReplyRecord
from reward.variance import VarianceComponents, variance_components

_SHOWN = 40
_WIDTH = 28


def reward_table(records: Sequence[ReplyRecord]) -> Table:
    """Return a table with one line a reply, the first ones of many."""
    metrics = sorted({name for record in records for name in record.per_metric})
    task, reply = Column("task", max_width=_WIDTH), Column("reply", max_width=_WIDTH)
    task.no_wrap = reply.no_wrap = True
    table = Table("", task, reply, "MR", "valid", *metrics)
    for number, record in enumerate(records[:_SHOWN], start=1):
        scores = [_number(record.per_metric.get(name)) for name in metrics]
        valid = f"{record.n_valid}/{len(record.futures)}"
        named = [Text(plain(record.task_id)), Text(plain(" ".join(record.reply.split())))]
        table.add_row(str(number), *named, _reward(record), valid, *scores)
    if len(records) > _SHOWN:
        table.caption = f"and {len(records) - _SHOWN} more in the file"
    return table


def components(records: Sequence[ReplyRecord], K: int) -> VarianceComponents:
    """Return how much of the variance of R* is the replies' and how much is chance.

    Args:
        records: Those of a prompt share their uid.
        K: Futures of each.
    """
    groups: dict[str, list[list[float | None]]] = defaultdict(list)
    for record in records:
        if record.futures:
            rewards = {future.k: future.reward for future in record.futures}
            groups[record.uid].append([rewards.get(k) for k in range(K)])
    return variance_components(groups.values(), shared_users=True)


def variance_words(found: VarianceComponents) -> str | None:
    """Return the components in words, or None where there are none."""
    if found.within is None:
        return None
    between = "unknown" if found.between is None else f"{found.between:.4f}"
    return f"variance of R*: {found.within:.4f} between futures, {between} between replies"


def failures(records: Sequence[ReplyRecord]) -> list[str]:
    """Return each failed future with its reason."""
    return [
        f"{record.task_id}, reply {record.session}, future {future.k}: {future.failure}"
        for record in records
        for future in record.futures
        if future.failure is not None
    ]


def judge_usage(records: Sequence[ReplyRecord]) -> Mapping[str, float]:
    """Return what the judge has cost, summed by name."""
    total: dict[str, float] = {}
    for future in (future for record in records for future in record.futures):
        total = add_usage(total, future.judge_usage)
    return total


def _reward(record: ReplyRecord) -> str:
    if record.outcome is Outcome.FLOOR:
        return f"{record.mr:.3f} (floor: {record.fault})"
    return _number(record.mr)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
