"""R* and MR of replies that were worked out by hand: tests/reward/reward_table.yaml.

Each goes through the real metrics, the real judge (over HTTP, with verdicts from the table), the
real sandbox, and what the reward manager does with them.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from interaction.conversation import Conversation
from interaction.task import Goal, Task
from recipe.collabllm.record import FutureRecord, Outcome, ReplyRecord
from recipe.collabllm.scoring import ReplyScorer
from recipe.collabllm.settings import read_settings
from reward.judge.prompt import read_prompt
from reward.metric import count_words
from reward.multiturn_reward import conversation_reward, multiturn_reward
from reward.sandbox import active_protections
from tests.conftest import make_fact
from tests.recipe.collabllm.conftest import raw_settings, record
from tests.reward.judge.judge_server import shown_to
from tests.serving.fault_server import Handler, completion, fault_server

TABLE = yaml.safe_load(Path(__file__).with_name("reward_table.yaml").read_text(encoding="utf-8"))
CASES: list[dict[str, Any]] = TABLE["cases"]
EXACT = 1e-15  # the rounding of a few sums of numbers near 1

SINGERS = """
CREATE TABLE singer (name TEXT, age INTEGER);
INSERT INTO singer VALUES ('Ana', 30), ('Bo', 25), ('Cy', 31);
"""
TASKS = {
    "trip": Task(
        "planning/1",
        "planning",
        Goal(
            "A trip to Lisbon for five days with two kids.",
            (
                make_fact("destination", "to Lisbon", "which city", alternatives=("to Paris",)),
                make_fact("length", "five days", "how many days"),
                make_fact("company", "with two kids", "who is coming"),
            ),
            {"hotel": ("hotel",)},
        ),
    ),
    "nothing_to_tell": Task("planning/2", "planning", Goal("A surprise.")),
    "pens": Task("math/1", "math", Goal("How many pens?"), "36"),
    "half": Task("math/2", "math", Goal("What is the chance?"), "1/2"),
    "train_and_bus": Task("math/3", "math", Goal("Which?"), "the train leaves before the bus does"),
    "cat": Task("document/1", "document", Goal("A cat."), "the cat sat on the mat today"),
    "invitation": Task(
        "document/2",
        "document",
        Goal("An invitation."),
        metadata={
            "required_points": [
                "Saturday, 3 pm",
                "no gifts",
                {"point": "bring a swimsuit", "accepted": ["bathing suit"]},
            ]
        },
    ),
    "add": Task(
        "code/1",
        "code",
        Goal("add"),
        metadata={
            "tests": "assert add(1, 2) == 3\nassert add(0, 0) == 0\n"
            "assert add(-1, 1) == 0\nassert add(2, 2) == 4",
            "entry_point": "add",
        },
    ),
    "singers": Task(
        "sql/1",
        "sql",
        Goal("Singers of 30 and more."),
        "SELECT name FROM singer WHERE age >= 30",
        {"database": SINGERS},
    ),
}
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def worked_out(expression: object) -> float:
    """Return an expression's value; nothing is rounded before the end."""
    exact = _NUMBER.sub(lambda number: f"F('{number[0]}')", str(expression))
    return float(eval(exact, {"F": Fraction, "min": min, "exp": math.exp}))


def in_turn(texts: Sequence[str], roles: Sequence[str]) -> list[dict[str, str]]:
    return [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)]


def reply_record(case: Mapping[str, Any]) -> ReplyRecord:
    futures = [
        FutureRecord(k, k, k).failed(future["failure"])
        if "failure" in future
        else FutureRecord(
            k,
            k,
            k,
            messages=in_turn(future["then"], ("user", "assistant")),
            stop=future.get("stop", "window"),
        )
        for k, future in enumerate(case.get("futures", []))
    ]
    return record(
        prompt=in_turn(case["prompt"], ("user", "assistant")),
        reply=case["reply"],
        fault=case.get("fault"),
        futures=futures,
        outcome=None,
        mr=None,
        per_metric={},
        n_valid=0,
    )


def said(conversation: Conversation) -> tuple[str, ...]:
    return tuple(message.content for message in conversation.messages)


def table_verdicts() -> dict[tuple[str, ...], Any]:
    return {
        (*case["prompt"], case["reply"], *future["then"]): future["verdicts"]
        for case in CASES
        for future in case.get("futures", [])
        if "verdicts" in future
    }


@pytest.fixture(scope="module")
def judge_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A judge who says what the table says of each conversation."""
    verdicts = table_verdicts()

    def judge(handler: Handler) -> None:
        given = verdicts[said(read_prompt(shown_to(handler)))]
        answer = {name: {"reason": "by hand", **verdict} for name, verdict in given.items()}
        handler.answer(completion(json.dumps(answer)))

    limits = str(tmp_path_factory.mktemp("limits"))
    with fault_server(judge) as server:
        yield {"model": "m", "base_url": server.url, "limits_dir": limits, "temperature": 0}


@pytest.fixture(scope="module")
def scored(judge_endpoint: dict[str, Any]) -> dict[str, ReplyRecord | BaseException]:
    """All replies, scored at once."""
    protections = active_protections()

    async def score(case: Mapping[str, Any]) -> ReplyRecord:
        raw = raw_settings(metrics=case["metrics"], judge_endpoint=judge_endpoint)
        scorer = ReplyScorer(read_settings(raw), count_words)
        return await scorer.score(TASKS[case["task"]], reply_record(case))

    async def score_all() -> dict[str, ReplyRecord | BaseException]:
        cases = [case for case in CASES if not protections.missing or not case.get("sandbox")]
        # One that raises is told by its own case; the others are scored all the same.
        records = await asyncio.gather(*map(score, cases), return_exceptions=True)
        return {case["name"]: found for case, found in zip(cases, records, strict=True)}

    return asyncio.run(score_all())


@pytest.fixture(params=CASES, ids=lambda case: str(case["name"]))
def worked(
    request: pytest.FixtureRequest, scored: dict[str, ReplyRecord | BaseException]
) -> tuple[dict[str, Any], ReplyRecord]:
    case: dict[str, Any] = request.param
    if case["name"] not in scored:
        pytest.skip("the sandbox does not work on this machine: python -m reward.sandbox")
    found = scored[case["name"]]
    if isinstance(found, BaseException):
        raise found
    return case, found


def test_every_conversation_has_the_scores_and_the_reward_that_were_worked_out(
    worked: tuple[dict[str, Any], ReplyRecord],
) -> None:
    case, found = worked
    for expected, future in zip(case.get("futures", []), found.futures, strict=True):
        if "reward" not in expected:
            assert future.reward is None and future.scores == {} and future.failure is not None
            assert expected.get("failure", expected.get("fails")) in future.failure
            continue
        assert future.failure is None
        scores = {name: worked_out(score) for name, score in expected["scores"].items()}
        assert future.scores == pytest.approx(scores, rel=0, abs=EXACT)
        assert future.reward == pytest.approx(worked_out(expected["reward"]), rel=0, abs=EXACT)


def test_every_reply_has_the_mr_that_was_worked_out(
    worked: tuple[dict[str, Any], ReplyRecord],
) -> None:
    case, found = worked
    assert found.n_valid == sum("reward" in future for future in case.get("futures", []))
    if case["mr"] is None:
        assert found.mr is None and found.outcome is Outcome.LEFT_OUT
        return
    assert found.outcome is (Outcome.FLOOR if "fault" in case else Outcome.SCORED)
    assert found.mr == pytest.approx(worked_out(case["mr"]), rel=0, abs=EXACT)


def test_the_arithmetic_alone_agrees_with_the_table() -> None:
    for case in CASES:
        weights = {name: chosen["weight"] for name, chosen in case["metrics"].items()}
        futures = [future for future in case.get("futures", []) if "reward" in future]
        valid = [{n: worked_out(s) for n, s in future["scores"].items()} for future in futures]
        for future, scores in zip(futures, valid, strict=True):
            expected = worked_out(future["reward"])
            assert conversation_reward(scores, weights) == pytest.approx(expected, rel=0, abs=EXACT)
        if futures:
            value = multiturn_reward(valid, weights).value
            assert value == pytest.approx(worked_out(case["mr"]), rel=0, abs=EXACT)


def test_the_table_has_forty_conversations_of_all_families() -> None:
    rewarded = [
        future for case in CASES for future in case.get("futures", []) if "reward" in future
    ]
    assert len(rewarded) >= 40
    assert {TASKS[case["task"]].family for case in CASES} == {
        "planning",
        "math",
        "document",
        "code",
        "sql",
    }
    assert len({case["name"] for case in CASES}) == len(CASES)
