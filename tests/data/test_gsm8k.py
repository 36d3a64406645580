"""The family `math`: what is withheld, what is kept, and bad rows by number."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from data.gsm8k import build_math, make_task, read_problems
from data.parquet import DataError
from interaction.agenda import questions_for, stand
from interaction.conversation import Message
from tests.conftest import SHARED_DATA

GSM8K = SHARED_DATA / "gsm8k_test.jsonl"
QUESTION = "Ann has 3 red boxes. Each box holds 12 pens. How many pens does Ann have?"
ROW = {"question": QUESTION, "answer": "3*12=36\n#### 36"}

needs_gsm8k = pytest.mark.skipif(not GSM8K.exists(), reason=f"{GSM8K} is not here")


def test_the_question_stays_and_numbers_become_the_users_facts() -> None:
    for seed in range(20):
        task = make_task("t", QUESTION, "36", random.Random(seed))
        assert task is not None
        visible = task.metadata["request"]
        assert visible.endswith("How many pens does Ann have?")
        assert 1 <= len(task.goal.facts) <= 2
        for fact in task.goal.facts:
            assert fact.statement not in visible and fact.statement in QUESTION


def test_a_withheld_sentence_is_asked_for_in_its_own_words() -> None:
    task = make_task("t", QUESTION, "36", random.Random(0))
    assert task is not None
    for fact in task.goal.facts:
        word = "red boxes" if "red" in fact.statement else "each box"
        (question,) = questions_for(task.goal, f"How many {word} are there, and what do they hold?")
        assert fact.slot in question.slots


def test_telling_the_sentence_is_telling_the_fact() -> None:
    task = make_task("t", QUESTION, "36", random.Random(0))
    assert task is not None
    said = " ".join(f.statement for f in task.goal.facts)
    assert not stand(task.goal, [Message("user", said)]).missing


def test_a_problem_without_numbers_to_withhold_is_left_out() -> None:
    assert make_task("t", "How many legs have four cats?", "16", random.Random(0)) is None


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{not json", "row 2: not a line of UTF-8 JSON"),
        ("[1]", "row 2: expected an object, got list"),
        (json.dumps({"question": "q"}), "row 2: key 'answer' must be a text"),
        (json.dumps({**ROW, "question": 5}), "row 2: key 'question' must be a text"),
        (json.dumps({**ROW, "answer": "36"}), "row 2: key 'answer' must end with '####"),
    ],
)
def test_a_bad_row_is_named_by_its_number(tmp_path: Path, line: str, reason: str) -> None:
    source = write(tmp_path / "math.jsonl", [json.dumps(ROW), line])
    with pytest.raises(DataError, match=reason):
        read_problems(source)


def test_bytes_that_are_no_text_are_named_by_row(tmp_path: Path) -> None:
    source = tmp_path / "math.jsonl"
    source.write_bytes(json.dumps(ROW).encode() + b"\n\xff\xfe\n")
    with pytest.raises(DataError, match="row 2"):
        read_problems(source)


def test_an_empty_or_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is empty"):
        read_problems(write(tmp_path / "math.jsonl", [""]))
    with pytest.raises(DataError, match="no such file"):
        read_problems(tmp_path / "none.jsonl")


def test_too_few_problems_for_two_splits_are_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "math.jsonl", [json.dumps(ROW)])
    with pytest.raises(DataError, match="too few"):
        build_math(source=source, train_rows=9, validation_rows=1, system_prompt="s", seed=1)


@needs_gsm8k
def test_the_published_set_splits_by_problem_and_keeps_its_answers() -> None:
    truths = dict(read_problems(GSM8K))
    train, validation = build_math(
        source=GSM8K, train_rows=900, validation_rows=100, system_prompt="s", seed=1
    )
    assert len(train) == 900 and 80 <= len(validation) <= 132
    assert not {e.task.task_id for e in train} & {e.task.task_id for e in validation}
    for example in train[:200]:
        assert truths[example.task.goal.summary] == example.task.ground_truth
        assert example.task.goal.facts
        assert not stand(example.task.goal, example.prompt.messages).told
