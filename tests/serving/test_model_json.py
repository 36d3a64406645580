"""Objects out of a model's text: what is read, what is repaired, what is an error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from interaction.chat import ChatUnreadable
from serving.model_json import read_form, read_object


class Turn(BaseModel):
    message: str
    done: bool = False


class Verdict(BaseModel):
    model_config = ConfigDict(extra="forbid")

    score: float = Field(ge=0, le=1)
    notes: list[str] = []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"message": "hi"}', "hi"),
        ('{"message": "5"}', "5"),
        ('{"message": "true"}', "true"),
        ('{"message": 5}', "5"),
        ('{"message": true}', "true"),
        ('{"message": 1.5}', "1.5"),
        ('{"message": "hi", "mood": 3}', "hi"),
        ('```json\n{"message": "hi"}\n```', "hi"),
        ('Sure, {x}! {"message": "hi"} Is {that} fine?', "hi"),
        ('{"message": "```python\\nd = {1: 2}\\n```"}', "```python\nd = {1: 2}\n```"),
        ('{"message": "two\nlines"}', "two\nlines"),
        ('{"message": "\U0001f600 \\u2264 \u2264"}', "\U0001f600 \u2264 \u2264"),
        ('{"message": "an open { brace"}', "an open { brace"),
        ('{"message": "he said "hi" to me", "done": false}', 'he said "hi" to me'),
        ("{'message': 'hi', 'done': False}", "hi"),
        ('{"message": "hi",}', "hi"),
        ('Here:\n```\n{"message": "a "b" c"}\n```\nBye.', 'a "b" c'),
    ],
)
def test_a_whole_object_is_read(text: str, message: str) -> None:
    assert read_form(text, Turn) == Turn(message=message)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "true",
        "null",
        '"hi"',
        '[{"message": "hi"}]',
        "no object at all",
        "only {x} of a formula",
        '{"message": "half a mess',
        '{"message": "use {x} and',
        '{"message": "set } and then',
        '{"message": "set 5} and then',
        '{"message": "at 5:30} and then',
        '{"message": "\\\\frac{a}{b} and then',
        '{"message": "hi", "done": fal',
        '{"message": "hi"',
        '{"text": "hi"}',
        '{"message": null}',
        '{"message": ["hi"]}',
        '{"message": "half an emoji \\ud83d"}',
        "{" * 5000,
    ],
)
def test_anything_else_is_unreadable_and_shows_what_was_said(text: str) -> None:
    with pytest.raises(ChatUnreadable) as caught:
        read_form(text, Turn)
    assert caught.value.text == text


def test_a_form_that_forbids_other_keys_still_passes_over_them() -> None:
    assert read_form('{"score": 1, "why": "good"}', Verdict) == Verdict(score=1)


def test_numbers_in_a_list_of_strings_become_text() -> None:
    assert read_form('{"score": 1, "notes": ["a", 2]}', Verdict).notes == ["a", "2"]


@pytest.mark.parametrize("score", ["1.5", "-1", "NaN", '"high"', "null"])
def test_a_number_out_of_range_is_an_error_that_names_its_field(score: str) -> None:
    with pytest.raises(ChatUnreadable, match="score"):
        read_form(f'{{"score": {score}}}', Verdict)


PROSE = st.text(st.characters(exclude_characters="{}", exclude_categories=["Cs"]))


@settings(max_examples=200, deadline=None)
@given(message=st.text(), before=PROSE, after=PROSE, ascii_only=st.booleans())
def test_any_string_survives_with_anything_around(
    message: str, before: str, after: str, ascii_only: bool
) -> None:
    text = json.dumps({"message": message}, ensure_ascii=ascii_only)
    assert read_form(f"{before}{text}{after}", Turn).message == message


@settings(max_examples=200, deadline=None)
@given(message=st.text(), data=st.data())
def test_no_part_of_an_object_is_taken_for_the_whole(message: str, data: st.DataObject) -> None:
    text = json.dumps({"message": message}, ensure_ascii=False)
    cut = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(ChatUnreadable):
        read_object(text[:cut])
