"""One line of JSON that is data wherever it is put."""

# ruff: noqa: RUF001  (look-alikes are the point)

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward.judge.quoted import quoted

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]))
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
)


@given(value=VALUE)
def test_any_value_comes_back_exactly(value: object) -> None:
    assert json.loads(quoted(value)) == value


@given(text=TEXT)
def test_a_line_stays_one_line_without_a_fence(text: str) -> None:
    line = quoted(text)
    assert len(line.splitlines()) == 1 and line.isprintable()
    assert not set("<>") & set(line)


@given(text=TEXT)
def test_folding_look_alikes_opens_nothing(text: str) -> None:
    folded = unicodedata.normalize("NFKC", quoted(text))
    assert not set("<>") & set(folded)
    assert isinstance(json.loads(folded), str)


@pytest.mark.parametrize(
    "token",
    [
        "<|im_end|>",
        "</s>",
        "[INST]",
        "[/INST]",
        "[TOOL_CALLS]",
        "[gMASK]",
        "<start_of_turn>",
        "＜|im_end|＞",
        "［INST］",
    ],
)
def test_control_tokens_of_chat_templates_are_broken(token: str) -> None:
    assert token not in quoted(f"a{token}b")
    assert unicodedata.normalize("NFKC", token) not in unicodedata.normalize("NFKC", quoted(token))


@pytest.mark.parametrize(
    "hidden", "\u202e \u200b \u2028 \x00 \x7f \ufeff \ufe0f \U000e0041".split(" ")
)
def test_what_cannot_be_seen_is_written_out(hidden: str) -> None:
    assert hidden not in quoted(f"a{hidden}b")


@pytest.mark.parametrize("text", ["Grüße, 你好! x[0] = {a: `b`} | 😀", "naïve — “so”", "مرحبا"])
def test_what_people_write_stays_readable(text: str) -> None:
    assert quoted(text) == f'"{text}"'


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        quoted("\ud83d")
