"""All metrics of a conversation at once; a failure is never a number."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from interaction.conversation import Conversation, StopReason
from interaction.task import Goal, Task
from reward.judge.question import Question
from reward.metric import MetricContext, MetricFailed, TaskUnfit
from reward.registry import make_metric, metric_names, register
from reward.score import check_tasks, score_conversation
from reward.weights import check_weights
from tests.reward.judge.judge_server import CLARITY, TACT, fair, judged_by

TASK = Task("t", "test", Goal("g"))
TALK = Conversation().add("user", "a").add("assistant", "b")


class Slow:
    """Takes a tenth of a second."""

    range = (0.0, 1.0)

    async def score(self, task: Task, conversation: Conversation, context: MetricContext) -> float:
        await asyncio.sleep(0.1)
        return 0.5


class Asks(Slow):
    """Has a question for the judge; the score is the first number of the answer."""

    def __init__(self, question: Question) -> None:
        self.question = question

    async def score(self, task: Task, conversation: Conversation, context: MetricContext) -> float:
        assert context.verdicts is not None
        verdict = await context.verdicts.of(self.question)
        return float(verdict[self.question.fields[0].name])


class Gives(Slow):
    """Returns or raises what it was made with."""

    def __init__(self, result: float | Exception) -> None:
        self._result = result

    async def score(self, task: Task, conversation: Conversation, context: MetricContext) -> float:
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


def test_metrics_run_at_once() -> None:
    began = time.perf_counter()
    scores = asyncio.run(score_conversation(TASK, TALK, {str(i): Slow() for i in range(20)}))
    assert len(scores) == 20
    assert time.perf_counter() - began < 1.0  # one after the other would take 2 s


@pytest.mark.parametrize(
    "bad", [float("nan"), float("inf"), -0.1, 1.5, MetricFailed("no verdict"), ValueError("bug")]
)
def test_a_score_that_is_none_is_a_failure_that_names_its_metric(bad: float | Exception) -> None:
    with pytest.raises(MetricFailed, match="judge: "):
        asyncio.run(score_conversation(TASK, TALK, {"fine": Slow(), "judge": Gives(bad)}))


def test_an_unknown_metric_is_refused_with_what_there_is() -> None:
    with pytest.raises(
        ValueError, match=r"unknown metric 'beauty'; there are: accuracy, bleu, .*token_amount"
    ):
        make_metric("beauty")


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(ValueError, match="'token_amount'.*'lambda'"):
        make_metric("token_amount", {"lambda": 1})


def test_every_metric_that_is_listed_can_be_made_and_has_a_range() -> None:
    needed = {"reward_model": {"path": "a folder"}}
    for name in metric_names():
        low, high = make_metric(name, needed.get(name)).range
        assert low < high


@pytest.mark.parametrize(
    ("talk", "given", "reason"),
    [
        (Conversation(), 0, "the conversation is empty"),
        (Conversation().add("user", "a"), 0, "no policy turn"),
        (TALK, 2, "no policy turn"),
        (TALK.add("user", "c"), 0, "ends on a user turn"),
        (TALK.add("user", "c").ended(StopReason.WINDOW), 0, "ends on a user turn"),
    ],
)
def test_a_conversation_that_is_not_whole_has_no_score(
    talk: Conversation, given: int, reason: str
) -> None:
    with pytest.raises(MetricFailed, match=reason):
        asyncio.run(score_conversation(TASK, talk, {"fine": Slow()}, MetricContext(given)))


def test_a_user_who_left_had_the_last_word() -> None:
    talk = TALK.add("user", "bye").ended(StopReason.USER_DONE)
    assert asyncio.run(score_conversation(TASK, talk, {"fine": Slow()})) == {"fine": 0.5}


def test_a_task_that_a_metric_cannot_use_is_named_with_its_row() -> None:
    fine = Task("t", "math", Goal("g"), ground_truth="5")
    with pytest.raises(TaskUnfit, match=r"row 1: metric accuracy: .*ground_truth"):
        check_tasks([fine, TASK], {"accuracy": make_metric("accuracy"), "fine": Slow()})


def test_metrics_that_ask_the_judge_share_one_call(limits: Path) -> None:
    """The scores are those of separate calls: this judge goes by the conversation alone."""
    metrics = {name: Asks(question) for name, question in (("a", CLARITY), ("b", TACT))}
    made = {}
    for calls in ("one", "separate"):
        with judged_by(fair, limits, calls=calls) as (judge, server):
            made[calls] = asyncio.run(score_conversation(TASK, TALK, metrics, judge=judge))
            assert len(server.log.bodies) == (1 if calls == "one" else 2)
    assert made["one"] == made["separate"] and len(set(made["one"].values())) == 2


@pytest.mark.parametrize(
    ("weights", "reason"),
    [
        ({}, "there are no weights"),
        ({"nope": 1.0}, "nope: a weight, but no such metric is scored; there are: a, b"),
        ({"a": float("nan")}, "a.weight=nan: must be finite"),
        ({"a": float("inf")}, "must be finite"),
        ({"a": "1"}, "must be a number"),
        ({"a": True}, "must be a number"),
        ({"a": 0, "b": 0.0}, "the weights of a, b are all 0"),
    ],
)
def test_weights_that_cannot_be_meant_are_refused(weights: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_weights(weights, ["a", "b"])


def test_one_weight_may_be_0() -> None:
    assert check_weights({"a": 0, "b": -1}, ["a", "b"]) == {"a": 0.0, "b": -1.0}


def test_a_name_cannot_be_taken_twice() -> None:
    with pytest.raises(ValueError, match="is taken"):
        register("token_amount")(Slow)
