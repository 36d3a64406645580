"""The user played by a language model: its prompts, its turns, and what happens when it errs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from interaction.chat import ChatAnswer, ChatFailed, ChatUnreadable, FormT
from interaction.conversation import Conversation, Message
from interaction.llm_user import LEAVES, Answer, LLMUser
from interaction.persona import Persona, all_personas
from interaction.task import Goal, Task
from interaction.user import SimulatorFailed, UserTurn
from interaction.user_prompt import describe

COST = {"calls": 1.0, "prompt_tokens": 100.0, "completion_tokens": 10.0}
ASKED = (
    Conversation()
    .add("system", "Be a helpful policy.")
    .add("user", "I want to go on a trip.")
    .add("assistant", "<think>Perhaps Paris.</think>Which city do you want to visit?")
)


@dataclass
class ScriptedChat:
    """Gives its answers in order, the last one for ever, and remembers what it was asked."""

    answers: Sequence[Mapping[str, Any] | str | Exception]
    asked: list[list[Message]] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)
    budgets: list[int | None] = field(default_factory=list)

    async def complete(
        self, messages: Sequence[Message], *, seed: int, max_tokens: int | None = None
    ) -> ChatAnswer[str]:
        raise AssertionError("the user asks for its form")

    async def structured(
        self,
        messages: Sequence[Message],
        form: type[FormT],
        *,
        seed: int,
        max_tokens: int | None = None,
    ) -> ChatAnswer[FormT]:
        self.asked.append(list(messages))
        self.seeds.append(seed)
        self.budgets.append(max_tokens)
        await asyncio.sleep(0)
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, str):
            raise ChatUnreadable("not the form", answer)
        return ChatAnswer(form.model_validate(answer), COST)


def said(message: object, done: bool = False, thought: str = "") -> dict[str, Any]:
    return {"so_far": "nothing", "thought": thought, "message": message, "done": done}


def answer(
    task: Task, *answers: Mapping[str, Any] | str | Exception, before: Conversation = ASKED
) -> tuple[UserTurn, ScriptedChat]:
    chat = ScriptedChat(answers)
    return asyncio.run(LLMUser(chat, ["plain"]).reply(task, before, 1)), chat


def text_of(messages: Sequence[Message]) -> str:
    return "\n".join(f"{message.role}: {message.content}" for message in messages)


def test_the_message_is_the_turn_and_the_thought_is_not(trip: Task) -> None:
    turn, chat = answer(trip, said("To Lisbon.", thought="They want a city, so I tell."))
    assert turn == UserTurn("To Lisbon.", False, COST)
    assert chat.budgets == [512]


def test_the_prompt_goes_from_what_never_changes_to_the_question(trip: Task) -> None:
    _, chat = answer(trip, said("To Lisbon."))
    instructions, scene, opening, heard, question = chat.asked[0]
    assert instructions.role == "system" and "$" not in instructions.content
    assert "You tell at most 2 things" in scene.content
    assert trip.goal.summary in scene.content and "do not mind about: hotel" in scene.content
    assert opening == Message("assistant", "I want to go on a trip.")
    assert heard == Message("user", "Which city do you want to visit?")
    assert "in English" in question.content and "Lisbon" not in question.content
    assert "helpful policy" not in text_of(chat.asked[0])


def test_a_second_call_repeats_nearly_all_of_the_first(trip: Task) -> None:
    _, first = answer(trip, said("To Lisbon."))
    more = ASKED.add("user", "To Lisbon.").add("assistant", "How many days do you have?")
    _, second = answer(trip, said("Five days."), before=more)
    one, two = text_of(first.asked[0]).split(), text_of(second.asked[0]).split()
    shared = next(i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b)
    assert shared / len(two) > 0.8
    assert second.asked[0][: len(first.asked[0]) - 1] == first.asked[0][:-1]


def test_text_of_goal_and_assistant_is_never_a_template(trip: Task) -> None:
    odd = replace(trip, goal=Goal("Pay $request or ${persona}, {{ 7 * 7 }} and $5."))
    _, chat = answer(odd, said("ok"), before=ASKED.add("user", "x").add("assistant", "$goal?"))
    prompt = text_of(chat.asked[0])
    assert "Pay $request or ${persona}, {{ 7 * 7 }} and $5." in prompt
    assert "user: $goal?" in prompt


def test_done_ends_the_conversation(trip: Task) -> None:
    assert answer(trip, said("Perfect, thanks!", done=True))[0].done


@pytest.mark.parametrize(
    "sign", ["[[TERMINATE CHAT]]", "###STOP###", "TERMINATE", "[[ TERMINATE ]]", "TERMINATE."]
)
def test_a_magic_word_is_removed_and_counts_as_done(trip: Task, sign: str) -> None:
    turn, _ = answer(trip, said(f"Thanks, bye. {sign}"))
    assert (turn.text, turn.done) == ("Thanks, bye.", True)
    assert answer(trip, said(sign))[0] == UserTurn(LEAVES, True, COST)


def test_the_word_itself_may_be_said(trip: Task) -> None:
    turn, _ = answer(trip, said("I want to terminate my contract."))
    assert (turn.text, turn.done) == ("I want to terminate my contract.", False)


@pytest.mark.parametrize(
    ("policy", "heard"),
    [
        ("<think>secret</think>Which city?", "Which city?"),
        ("Which city?<think>secret", "Which city?"),
        ("secret</think> Which city?", "Which city?"),
        ("<think>secret", "(says nothing)"),
    ],
)
def test_the_policys_thinking_is_not_heard_and_not_lost(
    trip: Task, policy: str, heard: str
) -> None:
    before = Conversation().add("user", "A trip, please.").add("assistant", policy)
    _, chat = answer(trip, said("To Lisbon."), before=before)
    assert chat.asked[0][-2] == Message("user", heard)
    assert before.messages[-1].content == policy


@pytest.mark.parametrize(
    "message",
    [
        "<think>I could say it.</think>To Lisbon.",
        "To Lisbon.<think>and then",
        "To Lisbon. I had better tell them now.",
    ],
)
def test_the_users_own_thinking_is_not_said(trip: Task, message: str) -> None:
    turn, _ = answer(trip, said(message, thought="I had better tell them now."))
    assert turn.text == "To Lisbon." and "reasked" not in turn.usage


@pytest.mark.parametrize("prose", ["5", "To Lisbon, please.", "<think>hm</think>5", "ja"])
def test_plain_prose_is_a_turn(trip: Task, prose: str) -> None:
    turn, chat = answer(trip, prose)
    assert turn.text == prose.rpartition(">")[2] and len(chat.asked) == 1


def test_a_number_in_the_form_is_a_turn(trip: Task) -> None:
    assert answer(trip, said(5))[0].text == "5"
    assert Answer.model_validate({"message": 2.5}).done is False


@pytest.mark.parametrize(
    ("bad", "counter"),
    [
        (said("How can I help you today?"), "drift_role_inversion"),
        (said("To Lisbon, five days, with two kids."), "drift_leakage"),
        (said("I want to go on a trip."), "drift_restart"),
        (said("Which city do you want to visit?"), "drift_repetition"),
        (said("To Paris."), "drift_invented"),
        (said("Ich möchte mit dem Zug fahren, aber nicht zu früh."), "drift_language"),
        (said(""), "drift_empty"),
        (said(None), "drift_empty"),
        (said("<think>only this"), "drift_empty"),
        ('{"message": "To Lis', "unreadable"),
        ("", "unreadable"),
    ],
)
def test_a_turn_that_drifts_is_asked_again_with_the_reason(
    trip: Task, bad: Mapping[str, Any] | str, counter: str
) -> None:
    turn, chat = answer(trip, bad, said("To Lisbon."))
    assert turn.text == "To Lisbon."
    assert turn.usage["reasked"] == turn.usage[counter] == 1
    assert turn.usage["calls"] == 2
    assert chat.asked[1][: len(chat.asked[0])] == chat.asked[0]
    assert [m.role for m in chat.asked[1][-2:]] == ["assistant", "user"]
    assert "cannot be used. You" in chat.asked[1][-1].content
    assert chat.seeds[0] != chat.seeds[1]


def test_the_cost_of_both_calls_is_summed(trip: Task) -> None:
    turn, _ = answer(trip, said("How can I help you?"), said("To Lisbon."))
    assert turn.usage == {
        "calls": 2,
        "prompt_tokens": 200,
        "completion_tokens": 20,
        "reasked": 1,
        "drift_role_inversion": 1,
    }


def test_drifting_twice_is_a_failure_that_names_the_drift(trip: Task) -> None:
    with pytest.raises(SimulatorFailed, match="twice: drift_role_inversion: You offered help"):
        answer(trip, said("How can I help you?"))
    with pytest.raises(SimulatorFailed, match="drift_empty"):
        answer(trip, said("How can I help you?"), said(" "))
    with pytest.raises(SimulatorFailed, match="unreadable"):
        answer(trip, "{")


def test_a_model_that_does_not_answer_is_a_failure(trip: Task) -> None:
    with pytest.raises(SimulatorFailed, match="model failed: no route"):
        answer(trip, ChatFailed("no route"))
    with pytest.raises(SimulatorFailed, match="model failed: no route"):
        answer(trip, said(""), ChatFailed("no route"))


def test_an_empty_goal_is_refused_before_any_call(trip: Task) -> None:
    with pytest.raises(SimulatorFailed, match="planning/trip/1': its goal is empty"):
        answer(replace(trip, goal=Goal(" ")), ChatFailed("not called"))


def test_a_user_cannot_answer_itself(trip: Task) -> None:
    with pytest.raises(SimulatorFailed, match="assistant turn"):
        answer(trip, said("hi"), before=Conversation().add("user", "hi"))


def test_the_opening_knows_the_request_and_never_ends(trip: Task) -> None:
    chat = ScriptedChat([said("Hi, I'd love to get away.", done=True)])
    turn = asyncio.run(LLMUser(chat, ["french"], None, "Planning.").open(trip, 1))
    assert (turn.text, turn.done) == ("Hi, I'd love to get away.", False)
    assert [message.role for message in chat.asked[0]] == ["system", "user", "user"]
    assert "Planning." in chat.asked[0][1].content and chat.budgets == [None]
    assert "I want to go on a trip." in chat.asked[0][2].content
    assert "in French" in chat.asked[0][2].content


def test_an_opening_is_asked_again_too(trip: Task) -> None:
    chat = ScriptedChat([said("", done=True), said("I need a holiday.")])
    assert asyncio.run(LLMUser(chat, ["plain"]).open(trip, 1)).usage["drift_empty"] == 1


def test_the_same_seed_is_the_same_person_all_along(trip: Task) -> None:
    chat = ScriptedChat([said("Hm."), said("To Lisbon."), said("No idea.")])
    user = LLMUser(chat)
    later = ASKED.add("user", "Hm.").add("assistant", "By train?")
    for seed in (3, 4, 5):
        asyncio.run(user.reply(trip, ASKED, seed))
        asyncio.run(user.reply(trip, later, seed))
    scenes = [messages[1].content for messages in chat.asked]
    assert scenes[0::2] == scenes[1::2] and len(set(scenes)) > 1
    assert len(set(chat.seeds)) == 6


def test_every_persona_can_be_described() -> None:
    texts = {describe(persona) for persona in all_personas()}
    assert len(texts) == len(all_personas())
    assert "the ISO code pt" in describe(Persona("x", 1, True, 0.0, 0.0, 1, language="pt"))


def test_two_goals_at_once_stay_apart(trip: Task) -> None:
    other = replace(trip, task_id="other", goal=Goal("A trip to Oslo."))
    chat = ScriptedChat([said("Somewhere nice.")])
    user = LLMUser(chat, ["plain"])

    async def both() -> None:
        await asyncio.gather(*(user.reply(t, ASKED, s) for s in range(4) for t in (trip, other)))

    asyncio.run(both())
    prompts = [text_of(messages) for messages in chat.asked]
    assert len(prompts) == 8
    assert all(("Lisbon" in prompt) != ("Oslo" in prompt) for prompt in prompts)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown persona 'bob'"):
        LLMUser(ScriptedChat([]), ["bob"])
    with pytest.raises(ValueError, match="max_tokens must be at least 1"):
        LLMUser(ScriptedChat([]), max_tokens=0)


def test_the_form_is_small_and_described() -> None:
    schema = json.dumps(Answer.model_json_schema())
    assert list(Answer.model_fields) == ["so_far", "thought", "message", "done"]
    assert schema.count("description") >= 4
