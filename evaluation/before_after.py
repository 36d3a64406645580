"""The same held-out problems and users, before and after training: one table.

Promises: only problems that have a value both times are compared, and how many were left out
is told; every number comes with its interval. Knows nothing of files or verl.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from evaluation.bootstrap import Interval, mean_interval, paired_difference

# What one problem scored: measure name to value; a measure without a value is absent.
Scores = Mapping[str, float]


@dataclass(frozen=True)
class Comparison:
    """One measure on one set of problems.

    Attributes:
        source: The set's name.
        measure: What was measured.
        before, after: Its means.
        difference: Mean of after - before over the same problems.
        left_out: Problems without a value in one of the two.
    """

    source: str
    measure: str
    before: Interval
    after: Interval
    difference: Interval
    left_out: int

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        told = {"source": self.source, "measure": self.measure, "left_out": self.left_out}
        for name in ("before", "after", "difference"):
            told[name] = vars(getattr(self, name))
        return told


def compare(
    before: Mapping[tuple[str, str], Scores],
    after: Mapping[tuple[str, str], Scores],
    measures: Sequence[str],
) -> list[Comparison]:
    """Compare every measure on every set of problems.

    Args:
        before, after: Scores by (source, problem).
        measures: What to compare, in this order.

    Returns:
        One comparison for each source and measure that has at least one pair.
    """
    rows = []
    for source in sorted({source for source, _ in before.keys() | after.keys()}):
        problems = sorted(key for key in before.keys() | after.keys() if key[0] == source)
        for measure in measures:
            pairs = [
                (before[key][measure], after[key][measure])
                for key in problems
                if measure in before.get(key, {}) and measure in after.get(key, {})
            ]
            if pairs:
                rows.append(_compared(source, measure, pairs, len(problems) - len(pairs)))
    return rows


def _compared(
    source: str, measure: str, pairs: Sequence[tuple[float, float]], left_out: int
) -> Comparison:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    return Comparison(
        source,
        measure,
        mean_interval(first),
        mean_interval(second),
        paired_difference(first, second),
        left_out,
    )


def as_table(comparisons: Sequence[Comparison], title: str) -> Table:
    """Return the comparisons as a table for the terminal."""
    table = Table(title=title, title_justify="left")
    for column in ("problems", "measure", "before [95%]", "after [95%]", "difference [95%]", "n"):
        named = column in ("problems", "measure")
        table.add_column(column, justify="left" if named else "right", no_wrap=True)
    for row in comparisons:
        n = f"{row.before.n}" + (f" (-{row.left_out})" if row.left_out else "")
        cells = (str(row.before), str(row.after), str(row.difference))
        table.add_row(row.source, row.measure, *cells, n)
    return table
