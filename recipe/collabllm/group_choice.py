"""Which replies are trained on, and what a step's logs say about them.

Promises: a reply without a reward is left out of its group; a group with fewer than two
rewarded replies is left out whole, because GRPO would take a lone reward as advantage; past
`max_failure_rate` the run stops. Pure functions of records; knows nothing of verl.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, pstdev, pvariance

from interaction.questions import questions_in
from recipe.collabllm.record import Outcome, ReplyRecord
from reward.metric import Metric
from reward.multiturn_reward import saturated_share
from reward.variance import variance_components

SMALLEST_GROUP = 2


class TooManyFailures(RuntimeError):
    """More futures failed than `collabllm.max_failure_rate` allows."""


def trained(records: Sequence[ReplyRecord]) -> list[bool]:
    """Return for each reply whether it is trained on."""
    rewarded: dict[str, int] = defaultdict(int)
    for record in records:
        rewarded[record.uid] += record.mr is not None
    return [record.mr is not None and rewarded[record.uid] >= SMALLEST_GROUP for record in records]


def check_failures(records: Sequence[ReplyRecord], lost: int, K: int, max_rate: float) -> float:
    """Return the share of futures that failed.

    Args:
        records: The step's replies.
        lost: Replies that never arrived; each counts as K failed futures.
        K: Futures per reply.
        max_rate: Largest share that is put up with.

    Raises:
        TooManyFailures: If more failed; it tells the commonest reasons.
    """
    reasons: dict[str, int] = defaultdict(int)
    for record in records:
        for future in record.futures:
            if future.failure is not None:
                reasons[future.failure] += 1
    if lost:
        reasons["the reply was lost (see the log for the agent loop's error)"] = lost * K
    failed = sum(reasons.values())
    total = sum(len(record.futures) for record in records) + lost * K
    rate = failed / total if total else 0.0
    if rate > max_rate:
        commonest = sorted(reasons.items(), key=lambda item: -item[1])[:3]
        told = "; ".join(f"{count} x {reason}" for reason, count in commonest)
        raise TooManyFailures(
            f"{failed} of {total} futures failed ({rate:.0%}), more than "
            f"collabllm.max_failure_rate={max_rate:.0%} allows: {told}. Mend the cause, or raise "
            "collabllm.max_failure_rate; the same command resumes from the last checkpoint"
        )
    return rate


def step_metrics(
    records: Sequence[ReplyRecord],
    lost: int,
    failure_rate: float,
    metrics: Mapping[str, Metric] | None = None,
) -> dict[str, float]:
    """Return what verl logs about a step's rewards, under `reward/...`.

    Args:
        records: The step's replies.
        lost: Replies that never arrived.
        failure_rate: Share of futures that failed.
        metrics: What they were scored by; None tells nothing of caps.
    """
    rewarded = [record for record in records if record.mr is not None]
    scored = [record for record in records if record.outcome is Outcome.SCORED]
    futures = [future for record in scored for future in record.futures if future.failure is None]
    told = {
        "failure_rate": failure_rate,
        "failed_futures": sum(f.failure is not None for r in records for f in r.futures),
        "resampled_futures": sum(f.resamples for r in records for f in r.futures),
        "lost_replies": lost,
        "left_out_replies": sum(not kept for kept in trained(records)),
        "valid_futures": sum(record.n_valid for record in records),
        "floored_replies": _mean(record.outcome is Outcome.FLOOR for record in rewarded),
        "ask_rate": _mean(bool(questions_in(record.reply, {})) for record in records),
        "reply_tokens": _mean(record.reply_tokens for record in records),
        "future_tokens": _mean(future.policy_tokens for future in futures),
        "user_turns": _mean(future.user_turns for future in futures),
        "user_done": _mean(future.stop == "user_done" for future in futures),
        "mr/mean": _mean(record.mr for record in rewarded if record.mr is not None),
        "mr/std": pstdev([r.mr for r in rewarded if r.mr is not None]) if rewarded else None,
        "mr/group_variance": _group_variance(rewarded),
        **_variance(scored),
    }
    for future in (future for record in records for future in record.futures):
        for role, usage in (("user", future.usage), ("judge", future.judge_usage)):
            for name, amount in usage.items():
                key = f"{role}/{name}"
                told[key] = (told.get(key) or 0.0) + amount
    names = {name for record in scored for name in record.per_metric}
    for name in sorted(names):
        told[name] = _mean(record.per_metric[name] for record in scored)
    for name, share in saturated_share([f.scores for f in futures], metrics or {}).items():
        told[f"{name}/at_cap"] = share
    return {f"reward/{name}": float(value) for name, value in told.items() if value is not None}


def _variance(scored: Sequence[ReplyRecord]) -> dict[str, float | None]:
    """Return the parts of the variance of R*, and the K that suits them at these costs."""
    groups: dict[str, list[list[float | None]]] = defaultdict(list)
    for record in scored:
        groups[record.uid].append([f.reward for f in sorted(record.futures, key=lambda f: f.k)])
    parts = variance_components(groups.values(), shared_users=True)
    # In seconds of waiting: the same machine at the same load gave both.
    reply = _mean(record.seconds.get("reply", 0.0) for record in scored)
    future = _mean(f.seconds for record in scored for f in record.futures)
    best = parts.best_K(reply, future) if reply and future else None
    return {
        "mr/within_reply_variance": parts.within,
        "mr/between_reply_variance": parts.unclipped,
        "mr/best_K": best if best is not None and math.isfinite(best) else None,
    }


def _mean(values: Iterable[float]) -> float | None:
    listed = list(values)
    return fmean(listed) if listed else None


def _group_variance(records: Sequence[ReplyRecord]) -> float | None:
    """Return the mean over prompts of the variance of MR among a prompt's replies."""
    groups: dict[str, list[float]] = defaultdict(list)
    for record in records:
        if record.mr is not None:
            groups[record.uid].append(record.mr)
    return _mean(pvariance(group) for group in groups.values() if len(group) > 1)
