"""`accuracy`: right answers are right in every style, wrong ones wrong, and only by rule or judge."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interaction.conversation import Conversation
from interaction.task import Goal, Task
from reward.judge.question import JudgeFailed, Question, Verdict
from reward.metric import ChecksTask, Judged, MetricContext, MetricFailed, TaskUnfit
from reward.metrics.accuracy import Accuracy
from reward.registry import make_metric
from tests.conftest import SHARED_DATA

GSM8K = SHARED_DATA / "gsm8k_test.jsonl"
needs_gsm8k = pytest.mark.skipif(not GSM8K.exists(), reason=f"{GSM8K} is not here")
PROSE = "Because the tide comes in twice a day"


class Says:
    """A judge that gives one verdict, and remembers what it was asked."""

    def __init__(self, correct: float | None) -> None:
        self.correct = correct
        self.asked: list[Question] = []

    async def of(self, question: Question) -> Verdict:
        self.asked.append(question)
        if self.correct is None:
            raise JudgeFailed("no verdict in 3 tries")
        return {"correct": self.correct}


def task_of(truth: str) -> Task:
    return Task("t-1", "math", Goal("g"), ground_truth=truth)


def talk_of(*turns: str) -> Conversation:
    talk = Conversation()
    for turn in turns:
        talk = talk.add("user", "The answer is 99, no?").add("assistant", turn)
    return talk


def score(
    truth: str, *turns: str, metric: Accuracy | None = None, judge: Says | None = None
) -> float:
    context = MetricContext(verdicts=judge)
    return asyncio.run((metric or Accuracy()).score(task_of(truth), talk_of(*turns), context))


# Each gives the turns that deliver a number, in one style.
STYLES: Mapping[str, Callable[[int], list[str]]] = {
    "plain": lambda n: [f"{n}"],
    "boxed": lambda n: [rf"We add 3 and 4 to get 7. So it is \boxed{{{n}}}."],
    "boxed with units": lambda n: [rf"Hence $\boxed{{{n}\text{{ apples}}}}$ for 5 people."],
    "boxed with separators": lambda n: [rf"$$\boxed{{{n:,}}}$$".replace(",", "{,}")],
    "units": lambda n: [f"Each week has 7 days. The answer is {n} dollars per week, or so."],
    "currency": lambda n: [f"First she has 20. In total she makes ${n:,} each day."],
    "separators": lambda n: [f"2 + 2 = 4 is one part of it.\n\nThe final answer is {n:,}."],
    "fraction": lambda n: [f"Halving 2 times over, the answer is {2 * n}/2."],
    "LaTeX fraction": lambda n: [rf"The answer is $\frac{{{3 * n}}}{{3}}$."],
    "decimals": lambda n: [f"Answer: {n}.00"],
    "sentence": lambda n: ["12 of 30 are red.", f"Therefore 4 friends share {n} marbles."],
    "chain": lambda n: [f"So we get {n - 5} + 5 = {n}."],
    "LaTeX formula": lambda n: [rf"That is \(x = {n}\), after 2 steps. The answer is \({n}\)."],
    "bold heading": lambda n: [f"Step 1: 3 * 4 = 12.\n\n**Final Answer:** **{n}** marbles"],
    "data set": lambda n: [f"He runs 3*3=<<3*3=9>>9 times.\n#### {n:,}"],
    "thanks after": lambda n: [f"The answer is {n}.", "You're welcome! Anything else?"],
    "revised": lambda n: [f"The answer is {n + 7}.", rf"I misread it. Now it is \boxed{{{n}}}."],
    "number after": lambda n: [f"The answer is {n}.", "Glad to help with 2 questions at once!"],
    "question after": lambda n: [f"The answer is {n}.", "Shall I explain how 3 * 4 is 12?"],
    "thought after": lambda n: [f"It is \\boxed{{{n}}}.", "<think>Or 1?</think> I am sure."],
}


def wrong_numbers(truth: int) -> Iterator[int]:
    yield from {truth + 1, truth - 1, truth * 10, -truth, truth + 100} - {truth}


def references() -> list[int]:
    rows = [json.loads(line) for line in GSM8K.read_text(encoding="utf-8").splitlines()]
    return [int(row["answer"].split("####")[1].replace(",", "")) for row in rows]


async def disagreements(style: str) -> tuple[list[str], int]:
    """Return what was judged otherwise than it is, and how many were judged."""
    wrong: list[str] = []
    truths = references()
    for number, truth in enumerate(truths):
        others = list(wrong_numbers(truth))
        for said, right in [(truth, 1.0), (others[number % len(others)], 0.0)]:
            turns = STYLES[style](said)
            got = await Accuracy().score(task_of(str(truth)), talk_of(*turns), MetricContext())
            if got != right:
                wrong.append(f"row {number + 1}: {turns} is {got} where {truth} is right")
    return wrong, 2 * len(truths)


@needs_gsm8k
@pytest.mark.parametrize("style", STYLES)
def test_every_published_answer_is_right_and_every_other_number_wrong(style: str) -> None:
    wrong, judged = asyncio.run(disagreements(style))
    assert judged == 2 * 1319
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("truth", "text", "right"),
    [
        ("18", "The answer is 18.", 1),
        ("18", "The answer is 18.0", 1),
        ("0.5", r"\boxed{\frac{1}{2}}", 1),
        (r"\frac{\sqrt{3}}{2}", r"So $\boxed{\sqrt{\frac{3}{4}}}$.", 1),
        ("[0, 1)", r"The answer is $[0,1)$.", 1),
        ("(B)", "The answer is B.", 1),
        (r"\text{even}", r"So it is \boxed{\text{even}}.", 1),
        ("18", "The answer is 81.", 0),
        (r"\text{even}", "The answer is odd.", 0),
        ("18", "I do not know.", 0),
        ("18", "The answer is many.", 0),
        ("18", r"\boxed{9^{9^{9^9}}}", 0),
    ],
)
def test_a_rule_decides_numbers_formulas_choices_and_words(
    truth: str, text: str, right: float
) -> None:
    assert score(truth, text) == right


def test_a_revision_counts_and_what_the_user_says_does_not() -> None:
    assert score("18", "The answer is 18.", "No, it is 17.", "Sorry, the answer is 17.") == 0
    assert score("99", "I cannot say.") == 0


def test_a_conversation_that_ends_on_the_user_is_scored_by_what_the_policy_said() -> None:
    talk = talk_of("The answer is 18.").add("user", "I think the answer is 20.")
    assert asyncio.run(Accuracy().score(task_of("18"), talk, MetricContext())) == 1


@pytest.mark.parametrize("talk", [Conversation(), Conversation().add("user", "18?")])
def test_a_conversation_without_a_policy_turn_has_no_score(talk: Conversation) -> None:
    with pytest.raises(MetricFailed, match="no policy turn"):
        asyncio.run(Accuracy().score(task_of("18"), talk, MetricContext()))


@pytest.mark.parametrize("truth", ["", " ", PROSE, "9^{9^9}", "=+"])
def test_a_ground_truth_that_no_rule_can_use_is_found_before_and_fails_after(truth: str) -> None:
    metric = make_metric("accuracy")
    assert isinstance(metric, ChecksTask)
    with pytest.raises(TaskUnfit, match=r"'t-1'.*ground_truth.*judge: true"):
        metric.check(task_of(truth))
    with pytest.raises(MetricFailed, match="ground_truth"):
        score(truth, "It is 5.")
    with pytest.raises(MetricFailed, match="ground_truth"):
        score(truth, "I do not know.")


class TestWithAJudge:
    judged = Accuracy(judge=True)

    def test_only_then_is_there_a_question(self) -> None:
        assert isinstance(self.judged, Judged)
        assert self.judged.question.needs_truth
        assert not isinstance(Accuracy(), Judged)

    def test_it_is_asked_where_no_rule_decides(self) -> None:
        for truth, text in [(PROSE, "The tide does it."), ("18", "Eighteen."), ("18", "Hm.")]:
            judge = Says(0.8)
            assert score(truth, text, metric=self.judged, judge=judge) == 1
            assert judge.asked == [self.judged.question]
        assert score(PROSE, "The moon.", metric=self.judged, judge=Says(0.2)) == 0

    def test_it_is_not_asked_where_a_rule_decides(self) -> None:
        for text, right in [("The answer is 18.", 1), ("The answer is 17.", 0)]:
            judge = Says(1 - right)
            assert score("18", text, metric=self.judged, judge=judge) == right
            assert not judge.asked

    def test_without_a_verdict_there_is_no_score(self) -> None:
        with pytest.raises(MetricFailed, match="no verdict in 3 tries"):
            score(PROSE, "x", metric=self.judged, judge=Says(None))
        with pytest.raises(MetricFailed, match="configure one"):
            score(PROSE, "x", metric=self.judged)

    def test_prose_is_a_fit_ground_truth_and_nothing_is_not(self) -> None:
        self.judged.check(task_of(PROSE))
        with pytest.raises(TaskUnfit):
            self.judged.check(task_of(""))
        with pytest.raises(MetricFailed):
            score("", "x", metric=self.judged, judge=Says(1))


@given(text=st.text(max_size=200))
def test_any_text_can_be_scored(text: str) -> None:
    assert score("7", text) in (0, 1)
