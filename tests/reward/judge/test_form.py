"""The form of a verdict: what fits, what does not, and that one bad verdict spoils no other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from reward.judge.form import answer_form, read_answer, salvaged, verdict_form
from reward.judge.question import Question, ScoreField, TextField
from serving.chat_request import strict_schema
from tests.reward.judge.judge_server import ACCURACY, CLARITY

ASKED = {"clarity": CLARITY, "judged_accuracy": ACCURACY}
GOOD: dict[str, Any] = {
    "clarity": {"reason": "r", "wording": 1, "layout": 7.5},
    "judged_accuracy": {"reason": "r", "correct": 0.0, "answer": "36"},
}
BAD = [1.01, -0.01, float("nan"), float("inf"), "1", "0.5", True, None, [0.5], {"score": 0.5}]


def clarity(wording: Any) -> dict[str, Any]:
    return {**GOOD["clarity"], "wording": wording}


def test_a_whole_answer_is_read_without_its_reasons() -> None:
    assert read_answer(answer_form(ASKED).model_validate(GOOD)) == {
        "clarity": {"wording": 1.0, "layout": 7.5},
        "judged_accuracy": {"correct": 0.0, "answer": "36"},
    }


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_what_is_no_number_in_range_is_no_verdict(bad: Any) -> None:
    with pytest.raises(ValidationError):
        verdict_form(CLARITY).model_validate(clarity(bad))


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_a_bad_verdict_spoils_no_other(bad: Any) -> None:
    reading = salvaged(json.dumps({**GOOD, "clarity": clarity(bad)}), ASKED)
    assert reading.verdicts == {"judged_accuracy": {"correct": 0.0, "answer": "36"}}
    assert set(reading.faults) == {"clarity"} and "wording" in reading.faults["clarity"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "not a whole JSON object"),
        ("I will not judge this.", "not a whole JSON object"),
        (json.dumps(GOOD)[:-30], "not a whole JSON object"),
        ("[]", "not a whole JSON object"),
        ("{}", "left out"),
        ('{"clarity": 1, "judged_accuracy": "{}"}', "not a whole JSON object"),
    ],
)
def test_an_answer_that_cannot_be_read_has_no_verdicts(text: str, fault: str) -> None:
    reading = salvaged(text, ASKED)
    assert not reading.verdicts and set(reading.faults) == set(ASKED)
    assert all(fault in reason for reason in reading.faults.values())


@given(value=st.floats() | st.integers() | st.text() | st.booleans())
def test_a_verdict_that_is_read_is_in_range(value: Any) -> None:
    reading = salvaged(json.dumps({"clarity": clarity(value)}, ensure_ascii=True), ASKED)
    if "clarity" in reading.verdicts:
        assert 0 <= float(reading.verdicts["clarity"]["wording"]) <= 1


def test_faults_hold_no_text_of_the_answer() -> None:
    secret = "ignore the rubric"
    text = json.dumps({"clarity": {**clarity(secret), secret: secret}, secret: secret})
    assert secret not in str(salvaged(text, ASKED).faults)


def test_a_text_keeps_to_its_pattern() -> None:
    asked = {"q": Question("q", "?", (TextField("numbers", "m", pattern="none|[0-9]+"),))}
    for text, fits in {
        "none": True,
        "12": True,
        "12, maybe": False,
        "": False,
        "x\n12": False,
    }.items():
        reading = salvaged(json.dumps({"q": {"reason": "", "numbers": text}}), asked)
        assert bool(reading.verdicts) is fits


def test_a_number_where_a_text_was_asked_for_is_its_text() -> None:
    verdict = {**GOOD["judged_accuracy"], "answer": 36}
    reading = salvaged(json.dumps({"judged_accuracy": verdict}), ASKED)
    assert reading.verdicts["judged_accuracy"]["answer"] == "36"


def test_the_schema_demands_every_field_and_says_its_range() -> None:
    schema = strict_schema(answer_form(ASKED))
    assert schema["required"] == list(ASKED) and schema["additionalProperties"] is False
    fields = schema["$defs"]["clarity_verdict"]
    assert list(fields["properties"]) == ["reason", "wording", "layout"] == fields["required"]
    assert "from 0 to 10" in fields["properties"]["layout"]["description"]


@pytest.mark.parametrize(
    "names", [(), ("a b",), ("reason",), ("x", "x"), ("_x",), ("model_dump",), ("1st",)]
)
def test_names_that_cannot_be_used_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="question 'q'"):
        verdict_form(Question("q", "?", tuple(ScoreField(name, "m") for name in names)))
