"""From futures to a reply's reward: floors, failures, raggedness."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interaction.task import Task
from recipe.collabllm.record import FutureRecord, Outcome, ReplyRecord, reward_numbers
from recipe.collabllm.scoring import ReplyScorer
from recipe.collabllm.settings import Settings, read_settings
from reward.registry import _METRICS, register
from tests.recipe.collabllm.conftest import raw_settings, record
from tests.reward.judge.judge_server import fair
from tests.serving.fault_server import fault_server, says

TOLD = [
    {"role": "user", "content": "I need to Lisbon."},
    {"role": "assistant", "content": "Nice place."},
]


def scorer(settings: Settings) -> ReplyScorer:
    return ReplyScorer(settings, lambda text: len(text.split()))


def score(settings: Settings, task: Task, given: ReplyRecord) -> ReplyRecord:
    return asyncio.run(scorer(settings).score(task, given))


def unscored(*futures: FutureRecord, **changes: Any) -> ReplyRecord:
    return record(futures=list(futures), outcome=None, mr=None, per_metric={}, n_valid=0, **changes)


def test_the_reward_is_the_mean_over_futures_of_the_weighted_scores(
    settings: Settings, trip: Task
) -> None:
    told = FutureRecord(0, 1, 2, messages=TOLD, stop="window")
    silent = FutureRecord(1, 1, 2, messages=[TOLD[1]], stop="window")
    scored = score(settings, trip, unscored(told, silent))
    assert scored.outcome is Outcome.SCORED and scored.n_valid == 2
    assert [f.reward for f in scored.futures] == pytest.approx([1 / 3 - 0.01, -0.01])
    assert scored.mr == pytest.approx((1 / 3) / 2 - 0.01)
    assert scored.per_metric["goal_elicited"] == pytest.approx(1 / 6)


@pytest.mark.parametrize("fault", ["length", "policy_invalid"])
def test_an_unusable_reply_gets_the_floor_below_anything_usable(
    settings: Settings, trip: Task, fault: str
) -> None:
    floored = score(settings, trip, unscored(fault=fault))
    worst = FutureRecord(
        0, 1, 2, messages=[{"role": "assistant", "content": "word " * 5000}], stop="length"
    )
    usable = score(settings, trip, unscored(worst))
    assert floored.outcome is Outcome.FLOOR and floored.n_valid == 0
    assert floored.mr is not None and usable.mr is not None and floored.mr < usable.mr


def test_failed_futures_are_dropped_and_the_rest_still_counts(
    settings: Settings, trip: Task
) -> None:
    """K is ragged: any number of futures may have failed."""
    fine = FutureRecord(0, 1, 2, messages=TOLD, stop="window")
    failed = FutureRecord(1, 1, 2).failed("user: no turn within 5 s")
    alone, with_failures = (
        score(settings, trip, unscored(*futures)) for futures in ([fine], [failed, fine, failed])
    )
    assert with_failures.mr == alone.mr and with_failures.n_valid == 1
    assert [f.failure for f in with_failures.futures] == [failed.failure, None, failed.failure]


def test_a_reply_without_a_valid_future_has_no_number(settings: Settings, trip: Task) -> None:
    lost = score(settings, trip, unscored(FutureRecord(0, 1, 2).failed("user: down")))
    assert lost.outcome is Outcome.LEFT_OUT and lost.mr is None and lost.per_metric == {}


def test_a_metric_that_fails_drops_its_future_with_the_reason(trip: Task) -> None:
    @register("always_fails")
    class AlwaysFails:
        range = (0.0, 1.0)

        async def score(self, *args: object) -> float:
            raise ZeroDivisionError("no verdict")

    try:
        settings = read_settings(raw_settings(metrics={"always_fails": {"weight": 1.0}}))
        lost = score(settings, trip, unscored(FutureRecord(0, 1, 2, messages=TOLD, stop="window")))
        assert lost.outcome is Outcome.LEFT_OUT
        assert lost.futures[0].failure == "metric: always_fails: ZeroDivisionError: no verdict"
    finally:
        del _METRICS["always_fails"]


def test_with_K_auto_each_stage_has_its_share_whatever_was_handed_out(trip: Task) -> None:
    plan = {"mean": 4, "first": 1, "most": 9, "timeout_s": 60}
    settings = read_settings(raw_settings(K="auto", auto_K=plan))
    told = FutureRecord(0, 1, 2, messages=TOLD, stop="window")
    silent = [FutureRecord(k, 1, 2, messages=[TOLD[1]], stop="window") for k in range(1, 6)]
    scored = score(settings, trip, unscored(told, *silent))
    assert scored.mr == pytest.approx((1 / 3) / 4 - 0.01)  # not / 6
    assert scored.per_metric["goal_elicited"] == pytest.approx((1 / 3) / 4)
    again = score(settings, trip, scored)
    assert again == scored, "what has a score is not scored again"


def test_a_judged_metric_asks_the_judge_of_the_settings_and_tells_what_it_cost(
    trip: Task, limits: Path
) -> None:
    future = FutureRecord(0, 1, 2, messages=TOLD, stop="window")
    metrics = {"interactivity": {"weight": 1.0}}
    with fault_server(fair) as server:
        endpoint = {"model": "m", "base_url": server.url, "limits_dir": str(limits)}
        settings = read_settings(raw_settings(metrics=metrics, judge_endpoint=endpoint))
        (scored,) = score(settings, trip, unscored(future)).futures
        assert scored.reward is not None and scored.judge_usage["calls"] == 1
    with fault_server(says('{"interactivity": 2}')) as server:
        endpoint["base_url"] = server.url
        settings = read_settings(raw_settings(metrics=metrics, judge_endpoint=endpoint))
        lost = score(settings, trip, unscored(future))
    assert lost.mr is None and lost.outcome is Outcome.LEFT_OUT
    assert (lost.futures[0].failure or "").startswith("metric: interactivity: no usable verdict")
    assert lost.futures[0].judge_usage


def test_verl_gets_the_same_keys_from_every_kind_of_reply() -> None:
    kinds = [record(), record(mr=None), record(outcome=Outcome.FLOOR, per_metric={})]
    keys = [reward_numbers(r, ["goal_elicited"]).keys() for r in kinds]
    assert keys[0] == keys[1] == keys[2]
    assert reward_numbers(kinds[2], ["goal_elicited"])["goal_elicited"] is None


def test_a_record_survives_the_way_through_json(settings: Settings, trip: Task) -> None:
    scored = score(settings, trip, unscored(FutureRecord(0, 1, 2, messages=TOLD, stop="window")))
    assert ReplyRecord.from_json(scored.to_json()) == scored
    assert ReplyRecord.from_json(replace(scored, reply='\u2028\n"').to_json()).reply == '\u2028\n"'
