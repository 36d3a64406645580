"""All metrics of a conversation at once; a failure is never a number."""

from __future__ import annotations

import asyncio
import time

import pytest

from interaction.conversation import Conversation
from interaction.task import Goal, Task
from reward.metric import MetricContext, MetricFailed
from reward.registry import make_metric, metric_names, register
from reward.score import score_conversation

TASK = Task("t", "test", Goal("g"))
TALK = Conversation().add("user", "a").add("assistant", "b")


class Slow:
    """Takes a tenth of a second."""

    range = (0.0, 1.0)

    async def score(self, task: Task, conversation: Conversation, context: MetricContext) -> float:
        await asyncio.sleep(0.1)
        return 0.5


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
    with pytest.raises(ValueError, match=r"unknown metric 'beauty'; there are: accuracy, goal_"):
        make_metric("beauty")


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(ValueError, match="'token_amount'.*'lambda'"):
        make_metric("token_amount", {"lambda": 1})


def test_every_metric_that_is_listed_can_be_made_and_has_a_range() -> None:
    for name in metric_names():
        low, high = make_metric(name).range
        assert low < high


def test_a_name_cannot_be_taken_twice() -> None:
    with pytest.raises(ValueError, match="is taken"):
        register("token_amount")(Slow)
