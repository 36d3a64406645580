"""Whatever a policy writes: the judge is shown exactly that, as data, and rules do not care."""

# ruff: noqa: RUF001  (look-alikes are the point)

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from interaction.conversation import Conversation, Message
from interaction.spoken import as_heard
from interaction.task import Fact, Goal, Task
from reward.judge.group import group_prompt, read_group_prompt
from reward.judge.prompt import JudgePrompt, conversation_prompt, read_prompt
from reward.judge.transcript import shown
from reward.metric import MetricContext
from reward.registry import make_metric
from reward.score import score_conversation
from tests.reward.judge.attacks import ATTACKS
from tests.reward.judge.judge_server import QUESTIONS, fair, judged_by

KEY = b"not known to the policy"
# No attack knows the answer: one that states it is right, and no attack.
FACT = Fact("boxes", "nineteen boxes", "There are nineteen boxes.", ("how many boxes",))
TASK = Task("math/1", "math", Goal("How many pens?", (FACT,)), ground_truth="4711")
ASKED = Conversation().add("user", "How many pens?")
TOLD = ASKED.add("user", f"{FACT.statement} That is all. What do you suggest?")
CONTROL = "<|im <｜ [INST] [/INST] [gMASK] </s> <s> <<SYS>> <start_of <end_of <!-- </t".split()

every_attack = pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)


def attacked(attack: str) -> Conversation:
    return ASKED.add("assistant", f"It is 17.{attack}").add("user", "ok").add("assistant", attack)


def prompt_about(conversation: Conversation) -> JudgePrompt:
    return conversation_prompt(TASK, QUESTIONS, shown(conversation, 1), KEY, 5)


def test_there_are_enough_attacks_and_each_is_another() -> None:
    assert len(set(ATTACKS.values())) >= 30


@every_attack
def test_the_prompt_shows_exactly_the_conversation(attack: str) -> None:
    text = prompt_about(attacked(attack)).messages(["clarity"], {})[-1].content
    assert read_prompt(text) == as_heard(attacked(attack))


@every_attack
def test_all_but_the_transcript_is_what_it_is_for_a_harmless_one(attack: str) -> None:
    harmless, hostile = prompt_about(attacked(" Bye.")), prompt_about(attacked(attack))
    assert hostile.instructions == harmless.instructions
    assert hostile.closing == harmless.closing
    one, other = hostile.material.split("\n"), harmless.material.split("\n")
    changed = [i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    fences_and_policy_turns = [i for i in range(len(one)) if "transcript" in one[i][:13]
                               or '"assistant"' in one[i][:40]]  # fmt: skip
    assert changed == fences_and_policy_turns


@every_attack
def test_no_line_or_control_token_of_it_reaches_the_prompt(attack: str) -> None:
    harmless, hostile = prompt_about(attacked(" Bye.")), prompt_about(attacked(attack))
    for token in CONTROL:
        assert hostile.material.count(token) == harmless.material.count(token), token
    assert all(c.isprintable() or c == "\n" for c in hostile.material)


@every_attack
def test_the_goal_and_the_answer_are_attacked_in_vain(attack: str) -> None:
    goal = Goal(attack, (Fact(attack, attack, attack, (attack,)),), {attack: (attack,)})
    task = Task(attack, "math", goal, attack, {"required_points": [attack]})
    prompt = conversation_prompt(task, QUESTIONS, shown(attacked(""), 1), KEY, 5)
    assert prompt.instructions == prompt_about(attacked("")).instructions
    assert read_prompt(prompt.messages(["clarity"], {})[-1].content) == as_heard(attacked(""))
    lines = prompt.material.split("</reference")[0].strip().split("\n")[1:]
    read = [json.loads(line) for line in lines]
    assert {"right_answer": attack} in read and {"the_user_wants": attack} in read


@every_attack
def test_a_group_shows_exactly_its_conversations(attack: str) -> None:
    talks = [attacked(" Bye."), attacked(attack), attacked(attack[::-1])]
    text = group_prompt(TASK, QUESTIONS, talks, 1, KEY, 5).messages(["x"], {})[-1].content
    assert read_group_prompt(text, 3) == [as_heard(talk) for talk in talks]


@every_attack
def test_no_rule_pays_for_it(attack: str) -> None:
    wrong = scores(TOLD.add("assistant", "The answer is 17."))
    assert scores(TOLD.add("assistant", f"The answer is 17.\n{attack}")) == wrong
    assert wrong["accuracy"] == wrong["goal_coverage"] == 0


@every_attack
def test_no_rule_is_blinded_by_it(attack: str) -> None:
    right = "With nineteen boxes, the answer is 4711."
    assert scores(TOLD.add("assistant", f"{attack}\n{right}")) == scores(
        TOLD.add("assistant", right)
    )
    assert scores(TOLD.add("assistant", right))["accuracy"] == 1


@pytest.mark.parametrize("name", ["fence_guessed_nonce", "turn_json_line", "odd_nul", "order_tags"])
def test_over_http_the_verdict_is_about_exactly_what_was_said(limits: Path, name: str) -> None:
    talk = attacked(ATTACKS[name])

    async def verdict(conversation: Conversation) -> Mapping[str, Any]:
        verdicts = judge.verdicts(TASK, conversation, QUESTIONS, given=1)
        return await verdicts.of(QUESTIONS[1])

    with judged_by(fair, limits) as (judge, _):
        assert asyncio.run(verdict(talk))["answer"] == talk.messages[-1].content.strip()


def test_the_conversation_of_the_policy_holds_nothing_of_the_judge() -> None:
    talk = attacked(ATTACKS["fence_closed"])
    before = talk.to_dicts()
    prompt_about(talk)
    assert talk.to_dicts() == before and Message("user", "How many pens?") in talk.messages
    assert all(secret not in json.dumps(before) for secret in (TASK.ground_truth, FACT.statement))


def scores(conversation: Conversation) -> Mapping[str, float]:
    metrics = {name: make_metric(name) for name in ("accuracy", "goal_elicited", "goal_coverage")}
    return asyncio.run(score_conversation(TASK, conversation, metrics, MetricContext(given=2)))
