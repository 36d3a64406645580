"""Intervals that cover, pairs that match."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from evaluation.before_after import as_table, compare
from evaluation.bootstrap import mean_interval, paired_difference


def test_intervals_cover_the_true_mean_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for trial in range(300):
        interval = mean_interval(rng.normal(1.0, 2.0, 40).tolist(), seed=trial)
        covered += interval.low <= 1.0 <= interval.high
    assert 0.90 <= covered / 300 <= 0.98


def test_the_same_values_give_the_same_interval() -> None:
    assert mean_interval([1.0, 2.0, 5.0]) == mean_interval([1.0, 2.0, 5.0])


def test_pairing_sees_through_differences_between_problems() -> None:
    before = [float(i) for i in range(40)]
    interval = paired_difference(before, [b + 0.5 for b in before])
    assert interval.low == pytest.approx(0.5) and interval.high == pytest.approx(0.5)


def test_what_is_not_paired_is_refused() -> None:
    with pytest.raises(ValueError, match="not pairs"):
        paired_difference([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="no values"):
        mean_interval([])


def test_only_problems_with_both_values_are_compared_and_the_rest_is_told() -> None:
    before = {
        ("a", "1"): {"MR": 0.0, "bleu": 0.1},
        ("a", "2"): {"MR": 1.0},
        ("b", "1"): {"MR": 0.5},
    }
    after = {("a", "1"): {"MR": 0.5}, ("a", "2"): {"MR": 1.5}, ("a", "3"): {"MR": 9.0}}
    (row,) = compare(before, after, ["MR", "bleu"])
    assert (row.source, row.measure, row.left_out) == ("a", "MR", 1)
    assert row.before.mean == 0.5 and row.difference.mean == 0.5


def test_the_table_tells_intervals_and_counts() -> None:
    scores = {("a", str(i)): {"MR": float(i % 2)} for i in range(10)}
    out = Console(file=io.StringIO(), width=120)
    out.print(as_table(compare(scores, scores, ["MR"]), "Title"))
    text = out.file.getvalue()  # type: ignore[attr-defined]
    assert "0.50 [" in text and "0.00 [0.00, 0.00]" in text and "10" in text
