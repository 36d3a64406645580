"""Drift of a simulated user: every fault is found, and nothing is found where there is none."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from data.gsm8k import make_task
from data.planning.domains import load_domains
from data.planning.problem import sample_problem
from interaction.agenda import stand
from interaction.agenda_user import AgendaUser
from interaction.conversation import Conversation
from interaction.drift import Drift, find_drift
from interaction.persona import all_personas
from interaction.seeds import derive_random
from interaction.task import Fact, Goal, Task
from tests.conftest import SHARED_DATA

GSM8K = SHARED_DATA / "gsm8k_test.jsonl"
PENS = make_task(
    "math/pens",
    "Ann has 36 red boxes in the old garden shed. Each box holds 12 blue fountain pens from Italy. She "
    "gives 17 of them away to her cousins. How many pens does Ann have left?",
    "415",
    random.Random(1),
)
TEXT = "I go to the market every morning and buy bread, cheese and a bottle of milk for my family."


def talk(*turns: str) -> Conversation:
    """Return a conversation that the user begins."""
    conversation = Conversation()
    for number, turn in enumerate(turns):
        conversation = conversation.add("assistant" if number % 2 else "user", turn)
    return conversation


ASKED = talk("I want to go on a trip.", "Which city do you want to visit?")
LATER = talk(
    "I want to go on a trip.",
    "How many days do you have?",
    "I have five days for it, not more.",
    "What kind of food do you like to eat there?",
)


def drifts(task: Task, before: Conversation, text: str, language: str = "en") -> list[Drift]:
    return [finding.drift for finding in find_drift(task, before, text, language)]


@pytest.mark.parametrize(
    "text",
    [
        "How can I assist you today?",
        "I'd be happy to help you with that.",
        "Sure! Here is a step-by-step plan: relax on the beach.",
        "Here are some tips to make it nicer.",
        "1. Book a flight early.\n2. Pack light clothes.\n3. Visit the old town.",
        "You should fly in the morning. You could stay near the river. Make sure to book early.",
        "Wie kann ich Ihnen helfen?",
        "```python\nprint('Lisbon')\n```",
        "I'm here to help. I'll be there to finish your last message.",
    ],
)
def test_playing_the_assistant_is_found(trip: Task, text: str) -> None:
    assert drifts(trip, ASKED, text) == [Drift.ROLE_INVERSION]


@pytest.mark.parametrize("text", ["12 * 3 = 36, so that's it.", "So the answer is 415."])
def test_solving_the_problem_is_found(text: str) -> None:
    assert PENS is not None
    assert drifts(replace(PENS, goal=Goal("Pens.")), ASKED, text) == [Drift.ROLE_INVERSION]


def test_a_result_that_the_assistant_found_may_be_said(trip: Task) -> None:
    assert PENS is not None
    before = talk("How many pens are left?", "That makes 36 * 12 - 17 = 415 pens.")
    assert drifts(PENS, before, "So the answer is 415? Thanks!") == []


def test_copying_the_text_that_was_to_be_written_is_found(trip: Task) -> None:
    essay = replace(trip, goal=Goal("An essay about my morning."), ground_truth=TEXT)
    assert drifts(essay, talk("I need an essay.", "What about?"), TEXT) == [Drift.ROLE_INVERSION]


def test_facts_that_were_not_asked_for_are_found_beyond_one(trip: Task) -> None:
    assert drifts(trip, ASKED, "To Lisbon. I need five days.") == []
    assert drifts(trip, ASKED, "To Lisbon for five days with two kids.") == [Drift.LEAKAGE]


def test_an_open_question_may_bring_out_two_facts_and_an_opening_one(trip: Task) -> None:
    open_question = talk("I want to go on a trip.", "Anything else I should know?")
    assert drifts(trip, open_question, "I need five days. I go with two kids.") == []
    everything = "I want to go on a trip to Lisbon for five days with two kids."
    assert drifts(trip, open_question, f"Well. {everything}") == [Drift.LEAKAGE]
    assert drifts(trip, Conversation(), "A trip with two kids, please.") == []
    assert drifts(trip, Conversation(), everything) == [Drift.LEAKAGE]


def test_a_sentence_in_other_words_is_told_by_its_numbers_or_by_a_run_of_words() -> None:
    assert PENS is not None
    task = _all_withheld(PENS)
    before = talk("How many pens does Ann have left?", "What colour do they have?")
    assert drifts(task, before, "No idea. There are 36 of them, 12 in each.") == [Drift.LEAKAGE]
    said = "Well, they are red boxes in some old garden shed, a dozen blue fountain pens from Italy each"
    assert drifts(task, before, said) == [Drift.LEAKAGE]
    assert drifts(task, before, "Red, and there are 3 colours of ink.") == []


def _all_withheld(task: Task) -> Task:
    parts = task.goal.summary.split(". ")
    facts = tuple(Fact(f"given {i}", part, part, ("xyz",)) for i, part in enumerate(parts[:3]))
    return replace(task, goal=Goal(task.goal.summary, facts), metadata={"request": parts[3]})


def test_what_the_assistant_said_itself_is_no_leak(trip: Task) -> None:
    before = talk("I want to go on a trip.", "So to Lisbon, five days, with two kids, right?")
    assert drifts(trip, before, "Yes, to Lisbon, five days, with two kids.") == []


def test_telling_a_goal_without_facts_at_once_is_found(trip: Task) -> None:
    whole = replace(trip, goal=Goal(f"{TEXT} Then we cook lunch together and clean the kitchen."))
    assert drifts(whole, Conversation(), f"Hi! {whole.goal.summary}") == [Drift.LEAKAGE]
    assert drifts(whole, Conversation(), "I need a text about my mornings.") == []


def test_the_same_turn_twice_is_found_but_not_a_short_one(trip: Task) -> None:
    assert drifts(trip, LATER, "I have five days for it, not more!") == [Drift.REPETITION]
    yes = talk("A trip, please.", "Is May fine?", "Yes.", "And do you like to walk?")
    assert drifts(trip, yes, "Yes.") == []


def test_the_same_shrug_to_two_questions_is_no_repetition(trip: Task) -> None:
    before = talk("I want a trip.", "When is it?", "I can't say.", "What matters most to you?")
    assert drifts(trip, before, "I can't say.") == []
    assert drifts(trip, before, "I can\u2019t say.") == []


def test_the_same_question_may_get_the_same_answer(trip: Task) -> None:
    again = talk(*(m.content for m in LATER.messages[:3]), "How many days do you have?")
    assert drifts(trip, again, "I have five days for it, not more.") == []


def test_repeating_the_assistant_is_found(trip: Task) -> None:
    text = "What kind of food do you like to eat there?"
    assert drifts(trip, LATER, text) == [Drift.REPETITION]


@pytest.mark.parametrize(
    "text", ["I want to go on a trip.", "Hello! Can you help me?", "Guten Tag, eine Frage."]
)
def test_opening_the_conversation_again_is_found(trip: Task, text: str) -> None:
    assert drifts(trip, LATER, text) == [Drift.RESTART]
    assert drifts(trip, Conversation(), text) == []


@pytest.mark.parametrize(
    "text",
    ["", "  \n", "...", "{", '{"message": "hi"', "message: hi", "<think>hm", "User: hi", "?!", "`"],
)
def test_nothing_and_what_is_left_of_a_format_is_found(trip: Task, text: str) -> None:
    assert drifts(trip, ASKED, text) == [Drift.EMPTY]


def test_a_value_that_the_goal_contradicts_is_found(trip: Task) -> None:
    assert drifts(trip, ASKED, "I need to go to Paris.") == [Drift.INVENTED]


@pytest.mark.parametrize(
    "text",
    ["Not to Paris.", "Would it be cheaper to Paris?", "I went to Paris once, now to Lisbon."],
)
def test_a_wrong_value_may_be_denied_asked_about_or_compared(trip: Task, text: str) -> None:
    assert drifts(trip, ASKED, text) == []


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "Ich möchte gern mit dem Zug fahren und habe nicht viel Zeit für die Reise."),
        ("de", "I would like to take the train and I do not have that much time for it."),
        ("es", "Je voudrais une chambre avec vue, mais pas dans le centre, et pour mon fils."),
        ("fr", "Yo quiero una habitación para mi familia, pero con vistas, y es muy caro."),
        ("en", "Я хочу поехать на поезде"),
        ("ru", "I would like to go by train"),
    ],
)
def test_another_language_is_found(trip: Task, language: str, text: str) -> None:
    assert drifts(trip, ASKED, text, language) == [Drift.LANGUAGE]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("de", "Ich möchte gern mit dem Zug fahren."),
        ("de", "Lisbon, bitte."),
        ("es", "Quiero ir a Lisboa con mi familia."),
        ("fr", "Je voudrais aller à Lisbonne avec mes enfants."),
        ("en", "A little café, déjà vu and a bit of Weltschmerz, please."),
        ("ru", "Я хочу MacBook Pro 14"),
        ("xx", "The language of this person is not known here, so nothing is said."),
    ],
)
def test_the_right_or_an_unclear_language_is_let_through(
    trip: Task, language: str, text: str
) -> None:
    assert drifts(trip, ASKED, text, language) == []


@pytest.mark.parametrize(
    "text",
    [
        "5",
        "ok",
        "No idea, what do you suggest?",
        "Could you tell me how I can help my grandmother on the plane?",
        "Hmm, you should know that I hate flying. Can you suggest something?",
        "Hey, that's not what I asked for.",
        "Let me know if you need anything else from me.",
        "To Lisbon. I'd like a list of restaurants, too.",
        "Can you give me a step-by-step plan?",
        "I don't mind; you could pick one for me.",
        "Great, here's the thing: I can't fly.",
        "That's everything. What do you suggest?",
        "Here is a list of my ingredients: flour and eggs.",
        "Plan it for May. Keep it cheap. Use trains only.",
        "I want to:\n- visit a museum\n- go to the beach\n- take a boat",
        "Hello Kitty is the theme my daughter wants.",
        "You booked a flight to Paris!",
        "Las Vegas, Los Angeles, El Paso, Los Cabos",
        "Feel free to ask me more. I hope that helps.",
        "I can't help you there, I don't know the dates yet.",
    ],
)
def test_what_people_say_raises_nothing(trip: Task, text: str) -> None:
    assert drifts(trip, ASKED, text) == []


def test_every_reason_is_one_sentence_to_the_user(trip: Task) -> None:
    for before, text in [(ASKED, "To Paris. 1 + 1 = 2."), (ASKED, "."), (LATER, "Hello again!")]:
        for finding in find_drift(trip, before, text):
            assert finding.reason.startswith("You ") and finding.reason.endswith(".")


def play(task: Task, ask: Callable[[Fact, random.Random], str], seed: int) -> None:
    """Play a conversation with the rule-based user; no turn of it may raise anything."""
    rng = derive_random(seed, "assistant")
    conversation = Conversation()
    text, done = AgendaUser().open(task, seed).text, False
    for _ in range(7):
        assert find_drift(task, conversation, text) == (), (conversation.to_dicts(), text)
        conversation = conversation.add("user", text)
        if done:
            return
        conversation = conversation.add("assistant", _assistant_turn(task, conversation, ask, rng))
        turn = asyncio.run(AgendaUser().reply(task, conversation, seed))
        text, done = turn.text, turn.done


def _assistant_turn(
    task: Task,
    conversation: Conversation,
    ask: Callable[[Fact, random.Random], str],
    rng: random.Random,
) -> str:
    standing = stand(task.goal, conversation.messages)
    if standing.answer_due:
        left_out = rng.choice((0, 0, 1))
        told = standing.told[left_out:]
        return "I suggest this: " + " ".join(fact.value for fact in told)
    if rng.random() < 0.25:
        return rng.choice(("Just relax and enjoy it.", "Could you tell me more?", "All booked."))
    return " ".join(ask(rng.choice(standing.missing), rng) for _ in range(rng.choice((1, 1, 2))))


@pytest.mark.parametrize("held_out", [False, True])
def test_the_rule_based_user_never_drifts_while_planning(held_out: bool) -> None:
    for domain in load_domains(held_out):
        slots = domain.slots
        for seed in range(6):
            task = sample_problem(domain, derive_random(seed, domain.name))
            play(task, lambda fact, rng, s=slots: rng.choice(s[fact.slot].questions), seed)


@pytest.mark.skipif(not GSM8K.exists(), reason=f"{GSM8K} is not here")
def test_the_rule_based_user_never_drifts_over_school_mathematics() -> None:
    rows = [json.loads(line) for line in GSM8K.read_text(encoding="utf-8").splitlines()[:60]]
    for seed, row in enumerate(rows):
        answer = row["answer"].split("####")[1].strip()
        task = make_task(str(seed), row["question"], answer, random.Random(seed))
        if task is not None:
            play(task, lambda fact, rng: f"What about the {rng.choice(fact.phrases)}?", seed)


def test_a_persona_of_another_language_is_judged_by_its_own(trip: Task) -> None:
    assert {persona.language for persona in all_personas()} >= {"en", "de", "es", "fr"}
    asked = talk("Ich möchte verreisen.", "Wohin möchten Sie reisen, und für wie lange?")
    assert drifts(trip, asked, "Nach Lissabon, für five days with two kids.", "de") == []
