"""The metrics made of rules: what they reward, and what they do not."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interaction.conversation import Conversation
from interaction.task import Goal, Task
from reward.metric import Metric, MetricContext, MetricFailed
from reward.metrics.goal_coverage import GoalCoverage
from reward.metrics.goal_elicited import GoalElicited
from reward.metrics.interactivity_rule import InteractivityRule

VAGUE = Conversation().add("user", "I want to go on a trip.")
TOLD = "I need to Lisbon. I need five days. I need with two kids."


def score(metric: Metric, task: Task, talk: Conversation, given: int = 0) -> float:
    return asyncio.run(metric.score(task, talk, MetricContext(given=given)))


def asked(text: str) -> Conversation:
    return VAGUE.add("assistant", text)


class TestGoalElicited:
    def test_counts_what_the_user_told(self, trip: Task) -> None:
        talk = asked("Which city?").add("user", "I need to Lisbon.").add("assistant", "Nice.")
        assert score(GoalElicited(), trip, talk) == pytest.approx(1 / 3)

    def test_guessing_a_fact_brings_out_nothing(self, trip: Task) -> None:
        assert score(GoalElicited(), trip, asked("Go to Lisbon for five days with two kids.")) == 0

    def test_nothing_to_tell_is_all_told(self) -> None:
        assert score(GoalElicited(), Task("t", "x", Goal("g")), VAGUE) == 1


class TestGoalCoverage:
    def test_an_answer_due_is_scored_by_the_facts_it_respects(self, trip: Task) -> None:
        talk = VAGUE.add("user", TOLD).add("assistant", "Five days to Lisbon: see the tram.")
        assert score(GoalCoverage(), trip, talk) == pytest.approx(2 / 3)

    def test_an_early_plan_earns_nothing_even_if_it_hits(self, trip: Task) -> None:
        assert score(GoalCoverage(), trip, asked("Five days to Lisbon with two kids!")) == 0

    def test_facts_repeated_in_a_question_are_no_answer(self, trip: Task) -> None:
        talk = VAGUE.add("user", TOLD).add("assistant", "So, to Lisbon, five days, with two kids?")
        assert score(GoalCoverage(), trip, talk) == 0

    def test_only_told_facts_count_when_the_user_closes_early(self, trip: Task) -> None:
        closed = "I need to Lisbon. That is all. What do you suggest?"
        talk = VAGUE.add("user", closed).add("assistant", "Fly to Lisbon.")
        assert score(GoalCoverage(), trip, talk) == 1


class TestInteractivity:
    def test_better_questions_are_worth_more(self, trip: Task) -> None:
        ladder = [
            "Here is a plan for you.",
            "Shall we dance?",
            "Which hotel?",
            "Which city? Which hotel?",
            "Which city?",
        ]
        worth = [score(InteractivityRule(), trip, asked(text)) for text in ladder]
        assert worth == sorted(worth) and len(set(worth)) == len(worth)
        assert worth[0] == 0 and worth[-1] == 1

    def test_two_good_questions_are_as_good_as_one(self, trip: Task) -> None:
        assert score(InteractivityRule(), trip, asked("Which city? How many days?")) == 1

    def test_asking_again_is_worth_no_more_than_any_question(self, trip: Task) -> None:
        talk = asked("Which city?").add("user", "I need to Lisbon.").add("assistant", "Which city?")
        assert score(InteractivityRule(), trip, talk, given=3) == InteractivityRule().any_question

    def test_the_same_question_twice_in_one_turn_counts_once(self, trip: Task) -> None:
        twice = score(InteractivityRule(), trip, asked("Which city? Which city?"))
        assert twice < score(InteractivityRule(), trip, asked("Which city?"))

    def test_a_list_of_questions_costs(self, trip: Task) -> None:
        many = "Which city? How many days? Who is coming? " + "Which city? " * 9
        assert score(InteractivityRule(), trip, asked(many)) < 0.3

    def test_asking_when_nothing_is_missing_is_worth_nothing(self, trip: Task) -> None:
        talk = VAGUE.add("user", TOLD)
        assert score(InteractivityRule(), trip, talk.add("assistant", "Which hotel?")) == 0
        assert score(InteractivityRule(), trip, talk.add("assistant", "Go to Lisbon.")) == 1

    def test_turns_that_were_given_are_not_scored(self, trip: Task) -> None:
        talk = asked("Bad turn.").add("user", "Hm.").add("assistant", "Which city?")
        assert score(InteractivityRule(), trip, talk, given=3) == 1
        assert score(InteractivityRule(), trip, talk) == 0.5

    def test_a_conversation_without_a_policy_turn_has_no_score(self, trip: Task) -> None:
        with pytest.raises(MetricFailed):
            score(InteractivityRule(), trip, VAGUE)

    @given(text=st.text(max_size=300))
    def test_any_turn_is_scored_within_range(self, text: str) -> None:
        task = Task("t", "x", Goal("g"))
        assert 0 <= score(InteractivityRule(), task, asked(text)) <= 1
