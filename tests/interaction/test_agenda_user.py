"""The rule-based user: what it tells, when, and when it has had enough."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from interaction.agenda import CLOSINGS, stand
from interaction.agenda_user import AgendaUser
from interaction.conversation import Conversation
from interaction.persona import PERSONAS, sample_persona
from interaction.task import Task
from interaction.user import SimulatorFailed, UserTurn

START = Conversation().add("user", "I want to go on a trip.")


def seed_of(name: str) -> int:
    """Return a seed whose persona has this name."""
    return next(seed for seed in range(1000) if sample_persona(seed).name == name)


PLAIN, TERSE, HASTY = seed_of("plain"), seed_of("terse"), seed_of("hasty")


def answer(task: Task, said: str, seed: int = PLAIN, before: Conversation = START) -> UserTurn:
    return asyncio.run(AgendaUser().reply(task, before.add("assistant", said), seed))


def test_a_fact_is_told_when_its_question_form_is_used(trip: Task) -> None:
    assert "I need to Lisbon." in answer(trip, "Where do you want to go?").text


def test_a_fact_is_told_when_its_slot_is_named(trip: Task) -> None:
    assert "to Lisbon" in answer(trip, "What is the destination?").text


def test_two_questions_get_two_facts(trip: Task) -> None:
    told = answer(trip, "Which city do you like? How many days do you have?").text
    assert "to Lisbon" in told and "five days" in told


def test_a_terse_persona_gives_bare_values_and_one_at_a_time(trip: Task) -> None:
    told = answer(trip, "Which city? How many days?", TERSE).text
    assert told == "To Lisbon."


def test_answering_at_once_brings_out_nothing(trip: Task) -> None:
    turn = answer(trip, "I suggest a week in a nice resort.")
    standing = stand(trip.goal, START.add("assistant", "x").add("user", turn.text).messages)
    assert standing.told == () and not turn.done


def test_a_slot_without_preference_does_not_matter(trip: Task) -> None:
    assert answer(trip, "Which hotel do you want?").text == "I don't mind about the hotel."


def test_a_wrong_assumption_is_corrected(trip: Task) -> None:
    turn = answer(trip, "Great, your flight to Paris is booked.")
    assert turn.text.startswith("Actually,") and "to Lisbon" in turn.text


def test_a_wrong_value_in_a_question_is_no_assumption(trip: Task) -> None:
    assert "Lisbon" not in answer(trip, "Shall I book a flight to Paris?").text


def test_asking_again_gets_the_same_answer_and_no_new_fact(trip: Task) -> None:
    before = START.add("assistant", "Which city?").add("user", "I need to Lisbon.")
    turn = answer(trip, "Which city?", before=before)
    assert turn.text == "I said that already: I need to Lisbon."


def test_the_last_fact_comes_with_a_closing(trip: Task) -> None:
    before = START.add("assistant", "?").add("user", "I need to Lisbon. I need five days.")
    text = answer(trip, "Who is coming with you?", before=before).text
    assert "with two kids" in text and text.endswith(CLOSINGS)


def test_an_answer_that_respects_every_fact_satisfies_the_user(trip: Task) -> None:
    before = START.add("assistant", "?").add(
        "user", "I need to Lisbon. I need five days. I need with two kids."
    )
    turn = answer(trip, "Fly to Lisbon with two kids for five days.", before=before)
    assert turn.done and stand(trip.goal, before.messages).missing == ()


def test_an_answer_that_ignores_a_fact_is_sent_back(trip: Task) -> None:
    before = START.add("assistant", "?").add(
        "user", "I need to Lisbon. I need five days. I need with two kids."
    )
    turn = answer(trip, "Fly to Lisbon for five days.", before=before)
    assert not turn.done and "with two kids" in turn.text


def test_patience_ends_after_fruitless_turns(trip: Task) -> None:
    conversation = START
    turns = []
    for _ in range(4):
        turns.append(answer(trip, "Just relax.", HASTY, conversation))
        conversation = conversation.add("assistant", "Just relax.").add("user", turns[-1].text)
    patience = next(p for p in PERSONAS if p.name == "hasty").patience
    assert [turn.done for turn in turns][: patience + 1] == [False] * patience + [True]


def test_the_same_seed_says_the_same(trip: Task) -> None:
    assert answer(trip, "Anything else?", 7) == answer(trip, "Anything else?", 7)


def test_misspelling_never_touches_a_fact(trip: Task) -> None:
    sloppy = seed_of("sloppy")
    for said in ("Which city?", "How many days?", "Who is coming?"):
        text = answer(trip, said, sloppy).text
        after = START.add("assistant", said).add("user", text)
        assert stand(trip.goal, after.messages).told


def test_the_opening_tells_no_fact_unless_the_persona_volunteers_one(trip: Task) -> None:
    for seed in range(60):
        told = stand(trip.goal, START.add("user", AgendaUser().open(trip, seed).text).messages).told
        assert len(told) <= 1
        assert not told or sample_persona(seed).volunteers > 0


def test_a_task_without_a_request_cannot_be_opened(trip: Task) -> None:
    with pytest.raises(SimulatorFailed, match=r"metadata\.request"):
        AgendaUser().open(replace(trip, metadata={}), 1)


def test_a_user_cannot_answer_itself(trip: Task) -> None:
    with pytest.raises(SimulatorFailed, match="assistant turn"):
        asyncio.run(AgendaUser().reply(trip, START, 1))


def test_personas_can_be_chosen_and_unknown_ones_are_refused(trip: Task) -> None:
    terse = AgendaUser(personas=["terse"])
    talk = START.add("assistant", "Which city?")
    assert {asyncio.run(terse.reply(trip, talk, seed)).text for seed in range(9)} == {"To Lisbon."}
    with pytest.raises(ValueError, match="unknown persona 'bob'; there are: plain, terse"):
        AgendaUser(personas=["bob"])
