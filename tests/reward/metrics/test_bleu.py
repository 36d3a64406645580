"""`bleu`: words in order, of the document that was finally delivered."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interaction.conversation import Conversation
from interaction.task import Goal, Task
from reward.metric import ChecksTask, MetricContext, MetricFailed, TaskUnfit
from reward.metrics.bleu import Bleu
from reward.registry import make_metric

ARTICLE = (
    "The harbour wakes before the town does. Fishing boats leave at four, and by six the first "
    "crates of herring stand on the quay. An auctioneer walks along the rows, names a price and "
    "moves on, while gulls argue over what has fallen between the stones."
)
REFERENCE = Task("t", "document", Goal("g"), ground_truth=ARTICLE)


def score(*turns: str, task: Task = REFERENCE, metric: Bleu | None = None) -> float:
    talk = Conversation()
    for turn in turns:
        talk = talk.add("user", "Go on.").add("assistant", turn)
    return asyncio.run((metric or Bleu()).score(task, talk, MetricContext()))


def test_the_reference_itself_scores_one_however_it_is_delivered() -> None:
    assert score(ARTICLE) == 1
    assert score(f"Here it is:\n```markdown\n{ARTICLE}\n```\nShall I go on?") == 1
    assert score(ARTICLE, "You're welcome!") == 1


def test_the_same_words_in_reverse_are_hardly_worth_anything() -> None:
    assert score(" ".join(reversed(ARTICLE.split()))) < 0.05


def test_nearer_texts_score_higher() -> None:
    words = ARTICLE.split()
    half_changed = " ".join([*words[: len(words) // 2], *["nothing"] * 22])
    one_changed = ARTICLE.replace("herring", "cod")
    other = "A spreadsheet holds numbers in cells, and formulas compute new ones from them."
    assert 0 <= score(other) < score(half_changed) < score(one_changed) < 1


def test_the_last_version_is_compared() -> None:
    other = "A spreadsheet holds numbers in cells. " * 6
    assert score(other, ARTICLE) == 1
    assert score(ARTICLE, other) < 0.1


def test_the_reference_may_stand_in_the_metadata() -> None:
    assert score(ARTICLE, task=Task("t", "d", Goal("g"), metadata={"document": ARTICLE})) == 1


def test_a_text_of_two_words_can_be_right() -> None:
    assert score("Good morning", task=Task("t", "d", Goal("g"), ground_truth="Good morning")) == 1


def test_words_of_a_language_without_spaces_are_found_if_asked_for() -> None:
    task = Task("t", "d", Goal("g"), ground_truth="今天天气很好我们去公园散步")
    nearly = "今天天气很好我们去公园跑步"
    assert score(nearly, task=task, metric=Bleu(words="zh")) > 0.7
    assert score(nearly, task=task) < 0.1


def test_nothing_delivered_is_worth_nothing() -> None:
    assert score("Who is going to read it?") == 0


@pytest.mark.parametrize("metadata", [{}, {"document": "  "}, {"document": ["a"]}])
def test_a_task_without_a_reference_is_found_before_and_fails_after(
    metadata: dict[str, object],
) -> None:
    task = Task("t-1", "d", Goal("g"), metadata=metadata)
    metric = make_metric("bleu")
    assert isinstance(metric, ChecksTask)
    with pytest.raises(TaskUnfit, match=r"'t-1'.*ground_truth or metadata\['document'\]"):
        metric.check(task)
    with pytest.raises(MetricFailed, match="reference"):
        score(ARTICLE, task=task)
    metric.check(REFERENCE)


def test_a_conversation_without_a_policy_turn_has_no_score() -> None:
    with pytest.raises(MetricFailed, match="no policy turn"):
        score()


def test_an_unknown_way_to_find_words_is_refused() -> None:
    with pytest.raises(ValueError, match="words must be one of 13a, intl, zh"):
        make_metric("bleu", {"words": "char"})


@given(reference=st.text(max_size=80).filter(str.strip), said=st.text(max_size=80))
def test_any_two_texts_are_scored_within_range(reference: str, said: str) -> None:
    task = Task("t", "d", Goal("g"), ground_truth=reference)
    assert 0 <= score(said, task=task) <= 1
