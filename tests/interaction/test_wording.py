"""Mentioning a phrase: words in order, plurals and case aside."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interaction.wording import mentions, sentences, words

plain_words = st.lists(
    st.sampled_from("alpha beta gamma delta omega".split()), min_size=1, max_size=6
)


@pytest.mark.parametrize(
    ("text", "phrase", "expected"),
    [
        ("How many guests will come?", "how many guest", True),
        ("How MANY Guests?", "how many guests", True),
        ("Many say how.", "how many", False),
        ("It is a budgetary matter.", "budget", False),
        ("Where do you want to go?", "where * go", True),
        ("Where did all of the other people go?", "where * go", False),
        ("What\u2019s your budget?", "budget", True),
        ("anything", "", False),
    ],
)
def test_a_phrase_matches_whole_words_in_order(text: str, phrase: str, expected: bool) -> None:
    assert mentions(text, phrase) is expected


@given(plain_words, plain_words, plain_words)
def test_a_phrase_is_found_wherever_it_stands(
    before: list[str], phrase: list[str], after: list[str]
) -> None:
    assert mentions(" ".join([*before, *phrase, *after]), " ".join(phrase))


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    assert all(words(sentence) is not None for sentence in sentences(text))
    assert not mentions(text, "*zqx*zqx")


def test_sentences_end_at_marks_and_line_breaks() -> None:
    assert sentences('Hello. Are you "ready?" Yes!\nGood') == [
        "Hello.",
        'Are you "ready?"',
        "Yes!",
        "Good",
    ]
