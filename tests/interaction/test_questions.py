"""What an assistant turn asks for."""

from __future__ import annotations

from interaction.questions import questions_in

ASKS = {"budget": ("budget", "how much * spend"), "guests": ("how many guests", "guest list")}


def test_a_question_names_the_slots_it_asks_for() -> None:
    (question,) = questions_in("How much do you want to spend?", ASKS)
    assert question.slots == ("budget",)


def test_one_question_can_ask_for_two_slots() -> None:
    (question,) = questions_in("What is your budget and how many guests are there?", ASKS)
    assert question.slots == ("budget", "guests")


def test_a_statement_is_no_question_even_if_it_mentions_a_slot() -> None:
    assert questions_in("Your budget is fine.", ASKS) == ()


def test_a_plain_request_is_a_question() -> None:
    (question,) = questions_in("Please tell me your budget.", ASKS)
    assert question.slots == ("budget",)


def test_an_open_question_is_told_from_a_specific_one() -> None:
    first, second = questions_in("Can you tell me more? What is your budget?", ASKS)
    assert first.is_open and not first.slots
    assert second.slots == ("budget",) and not second.is_open


def test_a_keyword_in_nonsense_does_not_make_two_questions() -> None:
    assert len(questions_in("Where's your parrot?", ASKS)) == 1
    assert questions_in("Where's your parrot?", ASKS)[0].slots == ()
