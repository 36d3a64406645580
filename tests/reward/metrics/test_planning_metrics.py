"""The metrics made of rules: what they reward, and what they do not."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interaction.conversation import Conversation
from interaction.task import Goal, Task
from reward.metrics.accuracy import Accuracy, final_answer
from reward.metrics.goal_coverage import GoalCoverage
from reward.metrics.goal_elicited import GoalElicited
from reward.metrics.interactivity_rule import InteractivityRule
from reward.metric import Metric, MetricContext, MetricFailed
from reward.metrics.token_amount import TokenAmount

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


class TestTokenAmount:
    def test_counts_the_policys_tokens_after_what_was_given(self, trip: Task) -> None:
        talk = asked("one two").add("user", "a b c d").add("assistant", "three four five")
        assert score(TokenAmount(lam=0.01), trip, talk) == pytest.approx(-0.05)
        assert score(TokenAmount(lam=0.01), trip, talk, given=3) == pytest.approx(-0.03)

    def test_is_capped_at_one_conversation_by_conversation(self, trip: Task) -> None:
        assert score(TokenAmount(lam=0.5), trip, asked("word " * 50)) == -1

    def test_needs_a_positive_cost(self) -> None:
        with pytest.raises(ValueError, match="lam must be greater than 0"):
            TokenAmount(lam=0)


class TestAccuracy:
    @pytest.mark.parametrize(
        ("text", "answer"),
        [
            ("so we get 5. The answer is 42.", "42"),
            ("The answer is 41. No, the answer is 42.", "42"),
            (r"It is \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
            ("She makes $1,234.50 each day.", "1234.50"),
            ("Answer: **18** dollars", "18"),
            ("The answer is: 5 apples, or 6", "6"),
            ("I do not know.", None),
            ("the answer is " + "9" * 200, None),
            (r"\boxed{9^{999999999}}", None),
        ],
    )
    def test_the_answer_is_what_the_text_ends_on(self, text: str, answer: str | None) -> None:
        assert final_answer(text) == answer

    @pytest.mark.parametrize(
        ("truth", "text", "right"),
        [
            ("18", "The answer is 18.", 1),
            ("18", "The answer is 18.0", 1),
            ("0.5", r"\boxed{\frac{1}{2}}", 1),
            ("1000", "That makes 1,000 in all.", 1),
            ("18", "The answer is 81.", 0),
            ("18", "I do not know.", 0),
        ],
    )
    def test_equal_numbers_are_right_however_written(
        self, truth: str, text: str, right: float
    ) -> None:
        task = Task("t", "math", Goal("g"), ground_truth=truth)
        assert score(Accuracy(), task, asked(text)) == right

    def test_only_the_last_turn_counts(self) -> None:
        task = Task("t", "math", Goal("g"), ground_truth="18")
        talk = asked("The answer is 18.").add("user", "Sure?").add("assistant", "No, it is 17.")
        assert score(Accuracy(), task, talk) == 0

    def test_a_ground_truth_that_cannot_be_read_is_a_failure(self) -> None:
        with pytest.raises(MetricFailed, match="cannot be parsed"):
            score(Accuracy(), Task("t", "math", Goal("g"), ground_truth=""), asked("It is 5."))

    @given(text=st.text(max_size=200))
    def test_any_text_can_be_scored(self, text: str) -> None:
        task = Task("t", "math", Goal("g"), ground_truth="7")
        assert score(Accuracy(), task, asked(text)) in (0, 1)
