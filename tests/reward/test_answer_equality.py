"""Are two answers the same, however they are written?"""

from __future__ import annotations

import os
import signal
import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward.answer_equality import NoRule, check_reference, is_bounded, same_answer
from reward.formula_worker import FormulaWorker, TooSlow


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("18", "18.0"),
        ("18", "$18"),
        ("1234", "1,234"),
        ("1234", "1 234"),
        ("18 dollars", "18"),
        (r"18\text{ dollars}", "18"),
        ("0.5", r"\frac{1}{2}"),
        ("1 1/2", r"1\frac12"),
        ("1/3", "0.333333"),
        ("50%", "0.5"),
        (".5", "1/2"),
        ("18 dollars per day", "18"),
        ("50", r"50\%"),
        ("18", "x = 18"),
        ("1e5", "100000"),
        (r"2\sqrt{3}", r"\sqrt{12}"),
        (r"3\pi", "9.42477796"),
        ("(x+1)^2", "x^2+2x+1"),
        ("[0,1)", "[0, 1)"),
        (r"\{1,2\}", r"\{2, 1\}"),
        (r"(-\infty,2)\cup(3,\infty)", r"(-\infty, 2) \cup (3, \infty)"),
        (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}"),
        (r"90^\circ", "90"),
        (r"\text{(B)}", "B"),
        (r"\text{even}", "Even"),
        (r"\boxed{18}", "18"),
        ("5!", "5!"),
    ],
)
def test_equal_answers_are_equal(reference: str, answer: str) -> None:
    assert same_answer(reference, answer) is True


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("18", "81"),
        ("18", "-18"),
        ("18", "180"),
        ("1/3", "0.33"),
        ("50", "0.5%"),
        ("50%", "5000%"),
        ("[0,1)", "[0,1]"),
        ("(3,4)", "(4,3)"),
        ("p - q", "q - p"),
        (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}2\\1\end{pmatrix}"),
        ("even", "veen"),
        ("(B)", "(C)"),
        (".5", "5"),
        ("11", "9^{9^9}"),
        ("11", "9" * 150 + "+x"),
        ("11", r"\input{/etc/passwd}"),
    ],
)
def test_other_answers_are_not(reference: str, answer: str) -> None:
    assert same_answer(reference, answer) is False


@pytest.mark.parametrize(
    ("reference", "answer"),
    [("18", "eighteen"), ("Monday", "It is Monday"), ("blue", "the sky is rather dark today")],
)
def test_words_against_a_number_or_a_sentence_are_left_undecided(
    reference: str, answer: str
) -> None:
    assert same_answer(reference, answer) is None


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("", "empty"),
        ("The French revolution began in Paris", "more than 3 words"),
        ("The revolution of 1789 began in Paris", "more than 3 words"),
        ("9^{9^9}", "too costly"),
        ("=+", "cannot parse"),
    ],
)
def test_a_reference_that_no_rule_can_use_is_refused(reference: str, reason: str) -> None:
    with pytest.raises(NoRule, match=reason):
        check_reference(reference)


@given(value=st.fractions(max_denominator=10**6), other=st.fractions(max_denominator=10**6))
def test_fractions_are_compared_to_six_places(value: Fraction, other: Fraction) -> None:
    assert same_answer(str(value), str(value)) is True
    if abs(value - other) > Fraction(1, 10**6):
        assert same_answer(str(value), str(other)) is False


@given(text=st.text(max_size=60))
def test_only_bounded_formulas_are_parsed(text: str) -> None:
    if is_bounded(text):
        assert "!" not in text.replace(r"\!", "")
        assert not is_bounded(text + "^{9^9}")


class TestFormulaWorker:
    def test_a_formula_that_takes_too_long_is_stopped_and_the_next_one_is_answered(self) -> None:
        worker = FormulaWorker(time_limit_s=1.0)
        assert worker.same("2", "1+1")
        began = time.monotonic()
        with pytest.raises(TooSlow, match="gets 1 s"):
            worker.same("1", "9^{9^{9^9}}")
        assert time.monotonic() - began < 5
        assert worker.same("2", "1+1")
        worker.close()

    def test_a_worker_that_died_is_started_anew(self) -> None:
        worker = FormulaWorker()
        assert worker.can_parse("2x")
        assert worker._process is not None
        os.kill(worker._process.pid, signal.SIGKILL)
        worker._process.wait()
        assert worker.can_parse("2x")
        worker.close()

    def test_it_sees_none_of_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SOME_API_KEY", "sk-secret")
        worker = FormulaWorker()
        worker.can_parse("2x")
        assert worker._process is not None
        with open(f"/proc/{worker._process.pid}/environ", "rb") as environment:
            assert b"sk-secret" not in environment.read()
        worker.close()
        assert worker._process is None
