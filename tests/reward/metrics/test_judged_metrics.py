"""The metrics a judge has a part in: `interactivity` and `document_coverage`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interaction.conversation import Conversation
from interaction.task import Goal, Task
from reward.judge.question import JudgeFailed, Question, Verdict
from reward.metric import ChecksTask, Judged, Metric, MetricContext, MetricFailed, TaskUnfit
from reward.metrics.document_coverage import DocumentCoverage, has, normalised
from reward.metrics.interactivity import Interactivity
from reward.registry import make_metric
from tests.reward.judge.judge_server import fair, judged_by, says_verdict

ASKED = Conversation().add("user", "Write an invitation.")
WORDED = {"point": "bring a swimsuit", "accepted": ["swimwear", "bathing suit"]}
TASK = Task(
    "doc/1",
    "document",
    Goal("An invitation."),
    metadata={"required_points": ["Saturday, 3 pm", "no gifts", WORDED]},
)
DOCUMENT = ASKED.add("assistant", "# Party\n\nCome on saturday 3 PM. Please: *no gifts*!")


class Gives:
    """Answers every question with what it was made with."""

    def __init__(self, verdict: Verdict | JudgeFailed) -> None:
        self.verdict = verdict

    async def of(self, question: Question) -> Verdict:
        if isinstance(self.verdict, JudgeFailed):
            raise self.verdict
        return self.verdict


def score(
    metric: Metric, talk: Conversation, verdict: Verdict | JudgeFailed | None = None, **task: Any
) -> float:
    context = MetricContext(given=1, verdicts=None if verdict is None else Gives(verdict))
    return asyncio.run(metric.score(replace(TASK, **task), talk, context))


def with_points(*points: object) -> Mapping[str, Any]:
    return {"required_points": list(points)}


class TestInteractivity:
    def test_is_the_mean_of_what_the_judge_says(self) -> None:
        names = ("asks_for_what_is_missing", "no_needless_questions", "easy_to_work_with")
        verdict = dict(zip(names, (1.0, 0.5, 0.0), strict=True))
        assert score(Interactivity(), DOCUMENT, verdict) == pytest.approx(0.5)

    def test_is_judged_and_says_what_the_ends_mean(self) -> None:
        metric = make_metric("interactivity")
        assert isinstance(metric, Judged)
        for field in metric.question.fields:
            assert all(anchor in field.meaning for anchor in ("0: ", "0.5: ", "1: "))

    @pytest.mark.parametrize(
        ("talk", "verdict", "reason"),
        [
            (DOCUMENT, None, "configure"),
            (DOCUMENT, JudgeFailed("no usable verdict"), "no usable verdict"),
            (ASKED, {"asks_for_what_is_missing": 1.0}, "no policy turn"),
        ],
    )
    def test_without_a_verdict_there_is_no_score(
        self, talk: Conversation, verdict: Verdict | JudgeFailed | None, reason: str
    ) -> None:
        with pytest.raises(MetricFailed, match=reason):
            score(Interactivity(), talk, verdict)


class TestDocumentCoverageByRule:
    def test_counts_points_whatever_case_and_punctuation(self) -> None:
        assert score(DocumentCoverage(), DOCUMENT) == pytest.approx(2 / 3)

    @pytest.mark.parametrize("words", ["Bring a\nswimsuit.", "SWIMWEAR", "a bathing-suit"])
    def test_any_accepted_wording_counts(self, words: str) -> None:
        talk = ASKED.add("assistant", words)
        assert score(DocumentCoverage(), talk) == pytest.approx(1 / 3)

    def test_a_part_of_a_word_is_no_point(self) -> None:
        talk = ASKED.add("assistant", "Swimwearable things, and no giftshop.")
        assert score(DocumentCoverage(), talk) == 0

    def test_what_the_user_wrote_is_no_document(self) -> None:
        assert score(DocumentCoverage(), ASKED.add("user", "No gifts, swimwear!")) == 0

    def test_asks_no_judge(self) -> None:
        assert not isinstance(make_metric("document_coverage"), Judged)
        assert score(DocumentCoverage(), DOCUMENT, JudgeFailed("gone")) > 0

    @given(before=st.text(max_size=40), after=st.text(max_size=40))
    def test_a_phrase_is_found_between_any_words(self, before: str, after: str) -> None:
        assert has(normalised(f"{before} No  gifts! {after}"), "no gifts")


class TestDocumentCoverageByJudge:
    @pytest.mark.parametrize(
        ("respected", "points"), [("1, 3", 2), ("none", 0), ("2", 1), ("1,1, 1", 1), ("3,2,1", 3)]
    )
    def test_counts_the_points_the_judge_names(self, respected: str, points: int) -> None:
        found = score(DocumentCoverage("judge"), DOCUMENT, {"respected": respected})
        assert found == pytest.approx(points / 3)

    @pytest.mark.parametrize(
        ("verdict", "reason"),
        [
            (None, "configure"),
            (JudgeFailed("no usable verdict"), "no usable verdict"),
            ({"respected": "1, 4"}, "of 3"),
            ({"respected": "0"}, "of 3"),
        ],
    )
    def test_without_a_usable_verdict_there_is_no_score(
        self, verdict: Verdict | JudgeFailed | None, reason: str
    ) -> None:
        with pytest.raises(MetricFailed, match=reason):
            score(DocumentCoverage("judge"), DOCUMENT, verdict)

    def test_is_judged_only_then(self) -> None:
        assert isinstance(make_metric("document_coverage", {"by": "judge"}), Judged)

    def test_the_judge_is_shown_the_numbered_points(self, tmp_path: Path) -> None:
        def three(answer: dict[str, Any]) -> Any:
            answer["document_coverage"]["respected"] = "1, 3"
            return answer

        metric = DocumentCoverage("judge")
        with judged_by(says_verdict(three), tmp_path) as (judge, server):
            verdicts = judge.verdicts(TASK, DOCUMENT, [metric.question], given=1)
            context = MetricContext(given=1, verdicts=verdicts)
            found = asyncio.run(metric.score(TASK, DOCUMENT, context))
        assert found == pytest.approx(2 / 3)
        assert (
            '{"required_points": 2, "value": "no gifts"}'
            in (server.log.bodies[0]["messages"][1]["content"])
        )

    @pytest.mark.parametrize("respected", ["1 and 3", "all", "1, not 2", "share: 0.5", ""])
    def test_an_answer_in_another_form_is_asked_for_again(
        self, tmp_path: Path, respected: str
    ) -> None:
        def chatty(answer: dict[str, Any]) -> Any:
            answer["document_coverage"]["respected"] = respected
            return answer

        metric = DocumentCoverage("judge")
        with judged_by(says_verdict(chatty), tmp_path) as (judge, server):
            verdicts = judge.verdicts(TASK, DOCUMENT, [metric.question], given=1)
            with pytest.raises(MetricFailed, match="no usable verdict"):
                asyncio.run(metric.score(TASK, DOCUMENT, MetricContext(1, verdicts=verdicts)))
            assert len(server.log.bodies) == 2


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        with_points(),
        {"required_points": "no gifts"},
        with_points("no gifts", 5),
        with_points("...!"),
        with_points({"accepted": ["x"]}),
        with_points({"point": "x", "accepted": "y"}),
        with_points({"point": "x", "accepted": ["?"]}),
    ],
    ids=str,
)
@pytest.mark.parametrize("by", ["rule", "judge"])
def test_a_task_without_usable_points_is_found_before_and_never_scored(
    by: Any, metadata: Mapping[str, Any]
) -> None:
    metric = DocumentCoverage(by)
    assert isinstance(metric, ChecksTask)
    with pytest.raises(TaskUnfit, match="'doc/1'.*required_points"):
        metric.check(replace(TASK, metadata=metadata))
    with pytest.raises(MetricFailed, match="required_points"):
        score(metric, DOCUMENT, {"respected": "none"}, metadata=metadata)


def test_a_task_with_points_is_fit() -> None:
    DocumentCoverage().check(TASK)


def test_another_way_to_score_is_refused() -> None:
    with pytest.raises(ValueError, match="'document_coverage': by must be"):
        make_metric("document_coverage", {"by": "vibes"})


def test_both_metrics_share_one_call(tmp_path: Path) -> None:
    metrics = [Interactivity(), DocumentCoverage("judge")]

    async def run() -> list[Any]:
        questions = [metric.question for metric in metrics]
        verdicts = judge.verdicts(TASK, DOCUMENT, questions, given=1)
        context = MetricContext(given=1, verdicts=verdicts)
        return await asyncio.gather(
            *(metric.score(TASK, DOCUMENT, context) for metric in metrics), return_exceptions=True
        )

    with judged_by(fair, tmp_path, attempts=1) as (judge, server):
        interactivity, coverage = asyncio.run(run())
        assert len(server.log.bodies) == 1
    assert 0 <= interactivity <= 1
    assert isinstance(coverage, MetricFailed)  # this judge copies a text into every text field
