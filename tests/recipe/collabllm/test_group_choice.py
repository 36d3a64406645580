"""Which replies are trained on, when a run stops, and what is logged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.collabllm.group_choice import TooManyFailures, check_failures, step_metrics, trained
from recipe.collabllm.record import FutureRecord, Outcome, ReplyRecord
from reward.metrics.token_amount import TokenAmount
from tests.recipe.collabllm.conftest import record

FAILED = FutureRecord(0, 1, 2).failed("user: down")


def test_a_reply_without_reward_is_left_out_of_its_group() -> None:
    records = [record("a", 0), record("a", 1, None), record("a", 2)]
    assert trained(records) == [True, False, True]


def test_a_group_of_one_is_left_out_whole() -> None:
    """GRPO would take a lone raw reward as its advantage."""
    records = [record("a", 0), record("a", 1, None), record("b", 0), record("b", 1)]
    assert trained(records) == [False, False, True, True]


def test_floored_replies_are_trained_on() -> None:
    records = [record("a", 0), record("a", 1, -0.35, outcome=Outcome.FLOOR)]
    assert trained(records) == [True, True]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=20))
def test_no_group_is_ever_trained_on_with_fewer_than_two_rewards(
    drawn: list[tuple[str, bool]],
) -> None:
    records = [record(uid, i, 0.5 if ok else None) for i, (uid, ok) in enumerate(drawn)]
    kept = [r for r, keep in zip(records, trained(records), strict=True) if keep]
    assert all(r.mr is not None for r in kept)
    assert all(sum(k.uid == uid for k in kept) != 1 for uid in "abc")


def test_the_failure_rate_is_failed_over_all_futures() -> None:
    records = [
        record(futures=[FAILED, FutureRecord(1, 1, 2)]),
        record(futures=[FutureRecord(0, 1, 2)] * 2),
    ]
    assert check_failures(records, lost=0, K=2, max_rate=0.5) == 0.25


def test_past_the_limit_the_run_stops_and_says_why_and_what_to_do() -> None:
    records = [record(futures=[FAILED]), record()]
    with pytest.raises(
        TooManyFailures, match=r"1 of 2 futures failed \(50%\).*20%.*1 x user: down.*resumes"
    ):
        check_failures(records, lost=0, K=1, max_rate=0.2)


def test_lost_replies_count_as_failures() -> None:
    assert check_failures([record()], lost=1, K=1, max_rate=1.0) == 0.5


def test_floored_replies_have_no_futures_and_do_not_count() -> None:
    floored = record(outcome=Outcome.FLOOR, futures=[])
    assert check_failures([floored, record()], lost=0, K=1, max_rate=0.0) == 0.0


def test_a_steps_metrics_tell_reward_spread_failures_turns_and_asking() -> None:
    records = [
        record("a", 0, 0.2),
        record("a", 1, 0.6, reply="Here is a plan."),
        record("b", 0, -0.35, outcome=Outcome.FLOOR, futures=[], per_metric={}, n_valid=0),
        record("b", 1, None, futures=[FAILED], per_metric={}),
    ]
    metrics = step_metrics(records, lost=0, failure_rate=0.25)
    assert metrics["reward/mr/mean"] == pytest.approx((0.2 + 0.6 - 0.35) / 3)
    assert metrics["reward/ask_rate"] == 0.75
    assert metrics["reward/goal_elicited"] == 0.5
    assert metrics["reward/failed_futures"] == 1
    assert metrics["reward/valid_futures"] == 2
    assert metrics["reward/left_out_replies"] == 2
    assert metrics["reward/floored_replies"] == pytest.approx(1 / 3)
    assert metrics["reward/mr/group_variance"] == pytest.approx(0.04)
    assert "reward/mr/within_reply_variance" not in metrics  # one future each tells nothing of it
    assert all(isinstance(value, float) for value in metrics.values())


def test_a_step_without_any_reward_still_has_metrics() -> None:
    metrics = step_metrics([record(mr=None, futures=[FAILED])], lost=0, failure_rate=1.0)
    assert "reward/mr/mean" not in metrics and metrics["reward/failed_futures"] == 1


def test_a_step_with_several_futures_tells_where_the_variance_is_and_the_best_K() -> None:
    def reply(session: int, *rewards: float) -> ReplyRecord:
        futures = [FutureRecord(k, 1, 2, reward=r, seconds=1.0) for k, r in enumerate(rewards)]
        return record("a", session, 0.0, futures=futures, seconds={"reply": 4.0})

    told = step_metrics([reply(0, 0.0, 2.0), reply(1, 5.0, 4.0)], lost=0, failure_rate=0.0)
    # Pairs by user: differences -5 and -2, mean -3.5; half their variance within, the rest between.
    assert told["reward/mr/within_reply_variance"] == pytest.approx(4.5 / 2)
    assert told["reward/mr/between_reply_variance"] == pytest.approx(3.5**2 / 2 - 2.25 / 2)
    assert told["reward/mr/best_K"] == pytest.approx((4 * 2.25 / 5) ** 0.5)


def test_a_steps_metrics_tell_how_many_conversations_cost_the_most_there_is() -> None:
    costs = [FutureRecord(k, 1, 2, scores={"token_amount": c}) for k, c in enumerate([-1.0, -0.5])]
    told = step_metrics([record(futures=costs)], 0, 0.0, {"token_amount": TokenAmount()})
    assert told["reward/token_amount/at_cap"] == 0.5
