"""What is said and what is only thought, also when the tags are a mess."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interaction.spoken import without_end_sign, without_thinking


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<think>a</think>b", "b"),
        ("a<thinking>b</thinking> c <THINK>d</THINK>e", "a c e"),
        ("a</think>b", "b"),
        ("a<think>b", "a"),
        ("<think>a<think>b</think>c", "c"),
        ("<think>a</think>b</think>c", "c"),
        ("a<think>b</think>c</think>d<think>e", "d"),
        ("<think>", ""),
        ("I think so", "I think so"),
    ],
)
def test_only_what_is_outside_of_thoughts_is_said(text: str, said: str) -> None:
    assert without_thinking(text) == said


@given(st.lists(st.sampled_from(["<think>", "</think>", "a", "b", " ", "\n"]), max_size=12))
def test_it_is_what_removing_pairs_and_then_loose_ends_gives(parts: list[str]) -> None:
    text = said = "".join(parts)
    for pattern in (r"<think>.*?</think>", r"\A.*</think>", r"<think>.*\Z"):
        said = re.sub(pattern, "", said, flags=re.S)
    assert without_thinking(text) == said.strip()


@pytest.mark.timeout(60)  # quadratic time would be many minutes
@pytest.mark.parametrize("text", ["<think>" * 200_000, "#" * 400_000, "</think>" * 200_000])
def test_a_hostile_text_is_read_in_linear_time(text: str) -> None:
    assert not without_thinking(text).strip("#")
    assert not without_end_sign(text)[1]
