"""Scripted assistants do what their names say, the same way every time."""

from __future__ import annotations

import asyncio

import pytest

from evaluation.scripted_assistants import SCRIPTED, told_facts
from interaction.agenda import questions_for, respects, wrong_assumptions
from interaction.agenda_user import AgendaUser
from interaction.conversation import Conversation
from interaction.language import other_language
from interaction.task import Fact, Goal, Task

OPENED = Conversation().add("user", "I want to go on a trip.")
ASK_NOTHING = ["asks_nothing", "answers_at_once", "answers_wrongly", "is_rude", "writes_2000_words"]


def say(name: str, task: Task, conversation: Conversation = OPENED) -> str:
    policy = SCRIPTED[name](task)
    return asyncio.run(policy.reply(conversation, max_tokens=1, seed=0)).text


def replied(name: str, task: Task, *answers: str) -> Conversation:
    conversation = OPENED
    for answer in answers:
        conversation = conversation.add("assistant", say(name, task, conversation))
        conversation = conversation.add("user", answer)
    return conversation


@pytest.mark.parametrize("name", SCRIPTED)
def test_the_same_conversation_gets_the_same_turn(name: str, trip: Task) -> None:
    assert say(name, trip) == say(name, trip) != ""


@pytest.mark.parametrize("name", ASK_NOTHING)
def test_these_ask_nothing(name: str, trip: Task) -> None:
    assert questions_for(trip.goal, say(name, trip)) == ()


def test_asks_for_each_fact_in_turn_and_then_answers(trip: Task) -> None:
    answers = ("I need to Lisbon.", "I need five days.", "I need with two kids.")
    for known, fact in enumerate(trip.goal.facts):
        turn = say("asks_everything", trip, replied("asks_everything", trip, *answers[:known]))
        assert [q.slots for q in questions_for(trip.goal, turn)] == [(fact.slot,)]
    last = say("asks_everything", trip, replied("asks_everything", trip, *answers))
    assert "?" not in last and all(respects(fact, last) for fact in trip.goal.facts)


def test_does_not_ask_twice_for_what_is_not_told(trip: Task) -> None:
    evasive = replied("asks_everything", trip, "Hm.", "Well.", "No idea.")
    assert "?" not in say("asks_everything", trip, evasive)


def test_forgets_one_fact_once(trip: Task) -> None:
    told = ("I need to Lisbon.", "I need five days.", "I need with two kids.")
    first = say("forgets_one", trip, replied("forgets_one", trip, *told))
    assert [respects(fact, first) for fact in trip.goal.facts] == [True, True, False]
    second = say("forgets_one", trip, replied("forgets_one", trip, *told, "You forgot my kids."))
    assert all(respects(fact, second) for fact in trip.goal.facts)


def test_answers_with_a_wrong_value(trip: Task) -> None:
    wrong = wrong_assumptions(trip.goal.facts, say("answers_wrongly", trip))
    assert [fact.slot for fact in wrong] == ["destination"]


def test_insists_on_one_question(trip: Task) -> None:
    assert say("insists", trip, replied("insists", trip, "To Lisbon.")) == say("insists", trip)


def test_writes_2000_words(trip: Task) -> None:
    assert len(say("writes_2000_words", trip).split()) == 2000


@pytest.mark.parametrize(("name", "language"), [("speaks_german", "de"), ("speaks_spanish", "es")])
def test_speaks_another_language(name: str, language: str, trip: Task) -> None:
    whole = " ".join(replied(name, trip, "What?", "Sorry?", "Hm?").said_by("assistant"))
    assert other_language(whole, "en") and not other_language(whole, language)


def test_asks_for_withheld_sentences_of_a_problem_by_a_phrase() -> None:
    fact = Fact("given 1", "Each box holds 12 pens.", "Each box holds 12 pens.", ("box", "holds"))
    task = Task("math/1", "math", Goal("Pens.", (fact,)), "36")
    assert say("asks_everything", task) == "What about the box?"


def test_what_was_told_in_other_words_counts(trip: Task) -> None:
    said = OPENED.add("assistant", "How long?").add("user", "Five or so, days I mean.")
    assert [fact.slot for fact in told_facts(trip, said)] == ["length"]


def test_the_agenda_user_is_helped_by_asking_everything(trip: Task) -> None:
    conversation, user = OPENED, AgendaUser(["plain"])
    for _ in range(5):
        turn = say("asks_everything", trip, conversation)
        conversation = conversation.add("assistant", turn)
        reply = asyncio.run(user.reply(trip, conversation, 1))
        conversation = conversation.add("user", reply.text)
        if reply.done:
            break
    assert reply.done and len(told_facts(trip, conversation)) == 3
