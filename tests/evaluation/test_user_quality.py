"""The quality measures: a good user passes, and every planted fault is found by its measure."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import pytest

from data.planning.domains import load_domains
from data.planning.problem import distinct_problems
from evaluation.scripted_assistants import SCRIPTED
from evaluation.user_quality import MEASURES, OVERALL, measure_trials, worst_trial
from evaluation.user_report import make_report
from evaluation.user_trial import TakenTurn, Trial, TrialOptions, play_trials
from interaction.agenda_user import AgendaUser
from interaction.conversation import Conversation, StopReason
from interaction.drift import Drift
from interaction.seeds import derive_random
from interaction.task import Task
from interaction.user import SimulatedUser, SimulatorFailed, UserTurn

SOME = {name: SCRIPTED[name] for name in ("asks_everything", "forgets_one", "asks_nothing")}


def tasks(count: int) -> list[Task]:
    return list(islice(distinct_problems(load_domains(held_out=True), derive_random(3)), count))


def play(user: SimulatedUser, count: int = 2, assistants=SOME, **options) -> list[Trial]:
    return asyncio.run(play_trials(user, tasks(count), assistants, TrialOptions(**options)))


class Broken(AgendaUser):
    """A user whose turns a subclass spoils."""

    async def reply(self, task: Task, conversation: Conversation, seed: int) -> UserTurn:
        return self.spoil(task, conversation, await super().reply(task, conversation, seed))

    def spoil(self, task: Task, conversation: Conversation, turn: UserTurn) -> UserTurn:
        raise NotImplementedError


class Inverts(Broken):
    def spoil(self, task, conversation, turn):
        return replace(turn, text=f"{turn.text} I am happy to help you with that!")


class Leaks(AgendaUser):
    def open(self, task, seed):
        return UserTurn(task.goal.summary)


class Repeats(Broken):
    def spoil(self, task, conversation, turn):
        told = "It has to be something that everybody in the whole family will enjoy."
        return replace(turn, text=told)


class Restarts(Broken):
    def spoil(self, task, conversation, turn):
        return replace(turn, text=f"Hello! {turn.text}")


class StopsEarly(Broken):
    def spoil(self, task, conversation, turn):
        return replace(turn, done=True)


class NeverStops(Broken):
    def spoil(self, task, conversation, turn):
        return replace(turn, done=False)


class SaysNothing(Broken):
    def spoil(self, task, conversation, turn):
        return replace(turn, text="...", done=turn.done)


class Fails(Broken):
    def spoil(self, task, conversation, turn):
        raise SimulatorFailed("the model is gone")


class Invents(Broken):
    def spoil(self, task, conversation, turn):
        fact = next(f for f in task.goal.facts if f.value.lower() not in turn.text.lower())
        return replace(turn, text=f"{turn.text} It has to be {fact.alternatives[0]}.")


class Withholds(Broken):
    def spoil(self, task, conversation, turn):
        return replace(turn, text="Hm.", done=False)


class SpeaksGerman(Broken):
    def spoil(self, task, conversation, turn):
        return replace(turn, text=f"{turn.text} Das ist mir sehr wichtig und ich möchte es nicht.")


# Who adds the same sentence to every turn may be found to repeat itself, rightly.
FAULTS = [
    (Inverts, {"role_inversion"}, {"repetition"}),
    (Leaks, {"leakage"}, set()),
    # Saying only this, it tells nothing: what it takes for an end is none.
    (Repeats, {"repetition"}, {"early_stop", "done_agreement", "withheld"}),
    (Restarts, {"restart"}, set()),
    (Withholds, {"withheld"}, {"repetition", "empty_or_malformed"}),
    (StopsEarly, {"early_stop", "done_agreement"}, set()),
    (NeverStops, {"never_stopping"}, {"repetition"}),
    (SaysNothing, {"empty_or_malformed"}, {"early_stop", "done_agreement", "withheld"}),
    (Fails, {"empty_or_malformed"}, set()),
    (Invents, {"invented_facts"}, {"repetition"}),
    (SpeaksGerman, {"language"}, {"repetition"}),
]


@pytest.mark.parametrize(("user", "planted", "may_follow"), FAULTS)
def test_a_planted_fault_is_found_by_its_measure(
    user: type[AgendaUser], planted: set[str], may_follow: set[str]
) -> None:
    exceeded = set(make_report("broken", play(user())).exceeded)
    assert planted <= exceeded <= planted | may_follow


def test_the_agenda_user_passes_with_every_assistant() -> None:
    trials = play(AgendaUser(), 3, SCRIPTED)
    assert len(trials) == 30
    report = make_report("agenda", trials)
    assert report.exceeded == () and report.failures == {}
    assert report.measures[OVERALL]["done_agreement"].mean == 1
    assert report.measures[OVERALL]["never_stopping"].n == 6


def trial(task: Task, *turns: str, assistant="asks_everything", done=True, failure=None) -> Trial:
    """Return a conversation that the user begins, and maybe ends."""
    conversation = Conversation()
    for number, turn in enumerate(turns):
        conversation = conversation.add("assistant" if number % 2 else "user", turn)
    taken = tuple(TakenTurn(turn) for turn in conversation.said_by("user"))
    conversation = conversation.ended(StopReason.USER_DONE) if done else conversation
    return Trial(task, assistant, conversation, taken, failure)


TOLD = ("I need a trip to Lisbon for five days with two kids.",)
GOOD = ("To Lisbon for five days with two kids: the zoo.",)
PART = ("To Lisbon for five days: the zoo.",)


@pytest.mark.parametrize(
    ("turns", "agrees"),
    [
        (TOLD + GOOD + ("Thanks!",), 1.0),
        (TOLD + PART + ("Thanks!",), 0.0),  # the answer ignores the kids
        (("I want to go on a trip.", *GOOD, "Thanks!"), 0.0),  # a lucky guess: nothing told
        (("To Lisbon.", "How long?", "Five days.", *GOOD, "Bye."), 0.0),
        (TOLD + PART + ("And my kids?",) + GOOD + ("Thanks!",), 1.0),
        (TOLD, 0.0),  # left before any answer
    ],
)
def test_an_ending_agrees_if_all_was_told_and_respected(
    trip: Task, turns: Sequence[str], agrees: float
) -> None:
    ended = trial(trip, *turns)
    assert MEASURES["done_agreement"](ended) == agrees
    assert MEASURES["early_stop"](ended) == 1 - agrees


def test_giving_up_on_a_hopeless_assistant_is_no_fault(trip: Task) -> None:
    left = trial(trip, "A trip.", "Plans are good.", "Forget it.", assistant="asks_nothing")
    for name in ("early_stop", "never_stopping", "done_agreement"):
        assert MEASURES[name](left) is None


def test_staying_is_a_fault_only_after_a_complete_answer(trip: Task) -> None:
    stayed = MEASURES["never_stopping"]
    assert stayed(trial(trip, *TOLD, *GOOD, "Hm, go on.", done=False)) == 1
    assert stayed(trial(trip, *TOLD, *GOOD, "Thanks!")) == 0
    assert stayed(trial(trip, *TOLD, *PART, "And the kids?", done=False)) is None
    assert stayed(trial(trip, *TOLD, *GOOD, done=False)) is None  # it had no turn to say so


def test_failures_count_as_turns_and_end_nothing_else(trip: Task) -> None:
    failed = trial(trip, "A trip.", "Where to?", done=False, failure="gone")
    assert MEASURES["empty_or_malformed"](failed) == 0.5
    assert MEASURES["early_stop"](failed) is None
    nothing = Trial(trip, "asks_everything", Conversation(), (), "gone")
    assert MEASURES["empty_or_malformed"](nothing) == 1
    assert MEASURES["words_per_turn"](nothing) is None


def test_goals_without_facts_are_not_judged_by_them(trip: Task) -> None:
    vague = replace(trip, goal=replace(trip.goal, facts=()))
    assert MEASURES["done_agreement"](trial(vague, "A trip.", "Go!", "Thanks!")) is None


def test_users_who_tell_their_facts_in_german_are_not_judged_by_them(trip: Task) -> None:
    told = replace(trial(trip, "Eine Reise.", "Go!", "Danke!"), language="de")
    assert MEASURES["early_stop"](told) is None


def test_intervals_are_by_assistant_and_overall(trip: Task) -> None:
    trials = [trial(trip, *TOLD, *GOOD, "Thanks!"), trial(trip, *TOLD, assistant="insists")]
    measured = measure_trials(trials)
    assert list(measured) == [OVERALL, "asks_everything", "insists"]
    assert measured[OVERALL]["words_per_turn"].n == 2
    assert "done_agreement" not in measured["insists"]
    assert "cost_per_turn" not in measured[OVERALL]


def test_cost_and_the_worst_conversation(trip: Task) -> None:
    cheap, dear = (
        replace(trial(trip, "A trip."), turns=(TakenTurn("A trip.", usage={"cost": cost}),))
        for cost in (0.1, 0.3)
    )
    assert measure_trials([cheap, dear])[OVERALL]["cost_per_turn"].mean == pytest.approx(0.2)
    assert worst_trial([cheap, dear], "cost_per_turn") is dear


class Opens(AgendaUser):
    """Opens like a model: in its own time."""

    async def open(self, task, seed):
        await asyncio.sleep(0)
        return UserTurn("Something in my own words.")


class OnlyReplies:
    async def reply(self, task, conversation, seed):
        return UserTurn("Thanks, bye.", done=True)


class Hangs(OnlyReplies):
    async def reply(self, task, conversation, seed):
        await asyncio.sleep(60)


def test_users_open_at_once_in_their_own_time_or_with_the_request() -> None:
    one = {"asks_nothing": SCRIPTED["asks_nothing"]}
    request = tasks(1)[0].metadata["request"]
    for user, opening in [
        (AgendaUser(["plain"]), request),
        (Opens(), "Something in my own words."),
        (OnlyReplies(), request),
    ]:
        first = play(user, 1, one)[0].turns[0].text
        assert first.startswith(opening)


def test_a_user_that_hangs_is_a_failure() -> None:
    trials = play(Hangs(), 1, {"insists": SCRIPTED["insists"]}, timeout_s=0.01)
    assert trials[0].failure == "no turn within 0.01 s" and not trials[0].done


def test_no_more_turns_than_asked_for() -> None:
    trials = play(NeverStops(), 1, turns=2)
    assert [len(trial.turns) for trial in trials] == [3, 3, 3]


@pytest.mark.parametrize(("language", "is_wrong"), [("en", True), ("de", False)])
def test_the_language_is_that_of_the_seed(language: str, is_wrong: bool) -> None:
    class German(OnlyReplies):
        def open(self, task, seed):
            return UserTurn("Ich möchte gerne etwas stricken und weiß noch nicht was ich brauche.")

    trials = play(German(), 1, {"insists": SCRIPTED["insists"]}, language=lambda seed: language)
    found = [any(f.drift is Drift.LANGUAGE for f in t.turns[0].findings) for t in trials]
    assert found == [is_wrong]


def test_the_same_seed_plays_the_same_conversations() -> None:
    first, again = ([t.conversation for t in play(AgendaUser(), 2, concurrency=c)] for c in (1, 8))
    assert first == again


def test_bad_options_are_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        TrialOptions(turns=0)
