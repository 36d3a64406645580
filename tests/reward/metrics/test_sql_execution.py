"""`sql_execution`: equal rows, hostile queries, and files that a task may name."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interaction.conversation import Conversation
from interaction.task import Goal, Task
from reward.metric import ChecksTask, MetricContext, MetricFailed, TaskUnfit
from reward.metrics.sql_execution import SqlExecution, has_order, same_rows
from reward.registry import make_metric

SCRIPT = """
CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT, age INTEGER, fee REAL, photo BLOB);
INSERT INTO singer VALUES
  (1, 'Ana', 30, 0.1, x'00ff'), (2, 'Bo', 25, 0.2, NULL), (3, 'Cy', 30, 0.3, NULL);
"""
METRIC = SqlExecution(cpu_s=1, wall_s=2.0, memory_mb=256, rows=1000)


def task(gold: str, database: Any = SCRIPT) -> Task:
    return Task("t", "sql", Goal("g"), gold, {"database": database})


def score(gold: str, query: str, database: Any = SCRIPT, metric: SqlExecution = METRIC) -> float:
    talk = Conversation().add("user", "Which singers?").add("assistant", f"```sql\n{query}\n```")
    return asyncio.run(metric.score(task(gold, database), talk, MetricContext()))


class TestScore:
    @pytest.mark.parametrize(
        ("gold", "query", "right"),
        [
            ("SELECT name FROM singer", "SELECT s.name FROM singer AS s ORDER BY age", 1),
            ("SELECT name FROM singer ORDER BY name", "SELECT name FROM singer ORDER BY 1", 1),
            ("SELECT name FROM singer ORDER BY name", "SELECT name FROM singer ORDER BY 1 DESC", 0),
            ("SELECT age FROM singer", "SELECT DISTINCT age FROM singer", 0),
            ("SELECT name, age FROM singer", "SELECT age, name FROM singer", 0),
            ("SELECT sum(fee) FROM singer", "SELECT 0.6", 1),
            ("SELECT count(*) FROM singer", "SELECT 3.0", 1),
            ("SELECT count(*) FROM singer", "SELECT '3'", 0),
            ("SELECT photo FROM singer", "SELECT photo FROM singer WHERE id > 0", 1),
            ("SELECT photo FROM singer WHERE id = 1", "SELECT 'x'", 0),
            ("SELECT 1 WHERE 0", "SELECT name FROM singer WHERE age > 99", 1),
            ("SELECT 9007199254740993", "SELECT 9007199254740992", 0),
        ],
    )
    def test_is_one_for_equal_rows(self, gold: str, query: str, right: float) -> None:
        assert score(gold, query) == right

    def test_is_zero_without_a_query(self) -> None:
        talk = Conversation().add("user", "Which?").add("assistant", "All of them.")
        assert asyncio.run(METRIC.score(task("SELECT 1"), talk, MetricContext())) == 0

    def test_a_reference_that_fails_is_no_score(self) -> None:
        with pytest.raises(MetricFailed, match="reference query fails: .*no such table: nobody"):
            score("SELECT * FROM nobody", "SELECT 1")

    def test_a_database_that_cannot_be_made_is_no_score(self) -> None:
        with pytest.raises(MetricFailed, match="database cannot be used"):
            score("SELECT 1", "SELECT 1", "CREATE TABLE t (a); INSERT INTO u VALUES (1);")


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE singer",
        "SELECT name FROM singer; DROP TABLE singer",
        "UPDATE singer SET age = 1 RETURNING name",
        "ATTACH DATABASE '/tmp/x.db' AS x",
        "PRAGMA query_only = OFF",
        "SELECT * FROM pragma_table_info('singer')",
        "SELECT load_extension('/tmp/x.so')",
        "SELECT readfile('/etc/passwd')",
        "VACUUM INTO '/tmp/x.db'",
        "CREATE TEMP TABLE t AS SELECT 1",
        "SELECT nothing FROM singer",
        "this is not SQL",
        "",
        f"{ENDLESS} SELECT count(*) FROM n",
        f"{ENDLESS} SELECT x FROM n",
        f"{ENDLESS} SELECT group_concat(x) FROM n",
        "SELECT hex(zeroblob(900000000))",
        "SELECT randomblob(5000000)",
    ],
)
def test_a_hostile_or_broken_query_scores_zero_in_time(query: str) -> None:
    started = time.monotonic()
    assert score("SELECT name FROM singer", query) == 0
    assert time.monotonic() - started < 8


class TestFiles:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        (tmp_path / "databases" / "music").mkdir(parents=True)
        for path in ("databases/music/music.sqlite", "outside.sqlite"):
            with sqlite3.connect(tmp_path / path) as connection:
                connection.executescript(SCRIPT)
            connection.close()
        (tmp_path / "databases" / "link.sqlite").symlink_to(tmp_path / "outside.sqlite")
        return tmp_path / "databases"

    def test_a_file_below_the_folder_is_read_and_stays_as_it_is(self, root: Path) -> None:
        metric = SqlExecution(databases=str(root))
        before = (root / "music/music.sqlite").read_bytes()
        name = "music/music.sqlite"
        assert score("SELECT name FROM singer", "SELECT name FROM singer", name, metric) == 1
        assert score("SELECT name FROM singer", "DELETE FROM singer", name, metric) == 0
        assert (root / "music/music.sqlite").read_bytes() == before
        assert [p.name for p in (root / "music").iterdir()] == ["music.sqlite"]

    @pytest.mark.parametrize(
        "name",
        ["../outside.sqlite", "link.sqlite", "/etc/passwd.db", "none.sqlite", "music\0.sqlite"],
    )
    def test_a_name_may_not_leave_the_folder(self, root: Path, name: str) -> None:
        with pytest.raises(TaskUnfit, match="is no file below"):
            SqlExecution(databases=str(root)).check(task("SELECT 1", name))

    def test_a_name_without_a_folder_says_what_to_set(self) -> None:
        with pytest.raises(TaskUnfit, match="set the option `databases`"):
            METRIC.check(task("SELECT 1", "music/music.sqlite"))

    def test_a_file_that_is_no_database_is_no_score(self, root: Path) -> None:
        (root / "text.sqlite").write_text("This is not a database. " * 100)
        with pytest.raises(MetricFailed, match="database cannot be used"):
            score("SELECT 1", "SELECT 1", "text.sqlite", SqlExecution(databases=str(root)))


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (Task("t", "sql", Goal("g"), "SELECT 1"), r"metadata\['database'\]"),
        (task("SELECT 1", 5), r"metadata\['database'\]"),
        (task("SELECT 1", " "), r"metadata\['database'\]"),
        (task(" "), "ground_truth"),
    ],
)
def test_an_unfit_task_is_told_what_is_wrong(problem: Task, reason: str) -> None:
    assert isinstance(METRIC, ChecksTask)
    with pytest.raises(TaskUnfit, match=reason):
        METRIC.check(problem)


@pytest.mark.parametrize(
    ("query", "ordered"),
    [
        ("SELECT a FROM t ORDER BY a", True),
        ("select a from t order\n by a limit 3", True),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a)", False),
        ("WITH x AS (SELECT a FROM t ORDER BY a) SELECT * FROM x", False),
        ("SELECT 'order by' FROM t -- order by a", False),
        ('SELECT "order by", [order by] FROM t /* order by */', False),
        ("SELECT ')' FROM (SELECT a FROM t) ORDER BY 1", True),
        ("SELECT sum(a) OVER (ORDER BY a) FROM t", False),
        ("SELECT a FROM t UNION SELECT b FROM u ORDER BY 1", True),
        ("SELECT border, bye FROM t", False),
    ],
)
def test_only_an_order_of_the_whole_query_counts(query: str, ordered: bool) -> None:
    assert has_order(query) is ordered


CELLS = st.one_of(
    st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(), st.binary()
)
ROWS = st.integers(1, 3).flatmap(lambda n: st.lists(st.tuples(*[CELLS] * n), max_size=8))


@given(ROWS, st.integers(0, 99))
def test_rows_equal_themselves_in_any_order(rows: list[Any], seed: int) -> None:
    shuffled = random.Random(seed).sample(rows, len(rows))
    assert same_rows(rows, shuffled, ordered=False)
    assert same_rows(rows, list(rows), ordered=True)


@given(ROWS, st.data())
def test_a_row_more_or_less_is_noticed(rows: list[Any], data: st.DataObject) -> None:
    assert not same_rows(rows, [*rows, ("one", "more")], ordered=False)
    if rows:
        gone = data.draw(st.integers(0, len(rows) - 1))
        assert not same_rows(rows, rows[:gone] + rows[gone + 1 :], ordered=False)


def test_rounding_does_not_tear_rows_apart() -> None:
    gold = [(0.1 + 0.2, "a"), (0.3, "b")]
    mine = [(0.3, "a"), (0.1 + 0.2, "b")]
    assert same_rows(gold, mine, ordered=False)
    assert not same_rows(gold, [(0.3, "a"), (0.31, "b")], ordered=False)


@given(st.text(max_size=200))
def test_any_text_can_be_looked_at_for_an_order(text: str) -> None:
    assert has_order(text) in (True, False)


def test_is_made_by_name() -> None:
    assert make_metric("sql_execution", {"rows": 10}).range == (0.0, 1.0)
    with pytest.raises(ValueError, match="rows"):
        make_metric("sql_execution", {"rows": 0})
