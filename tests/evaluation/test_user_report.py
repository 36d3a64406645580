"""The report on a user: verdicts, JSON, tables, and the command behind it."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from evaluation.user_quality import MEASURES, OVERALL
from evaluation.user_report import Thresholds, UserReport, as_tables, make_report
from evaluation.user_trial import TakenTurn, Trial
from interaction.conversation import Conversation, StopReason
from interaction.drift import Drift, Finding
from interaction.task import Task
from recipe.collabllm.users_report import run_users_report


def a_trial(task: Task, *faults: Drift, failure: str | None = None) -> Trial:
    said = Conversation().add("user", "I want [bold] things.").ended(StopReason.USER_DONE)
    found = tuple(Finding(fault, "You did wrong.") for fault in faults)
    turn = TakenTurn("I want [bold] things.", found, 0.5, {"calls": 1.0, "cost": 0.25})
    return Trial(task, "insists", said, (turn,), failure)


def test_thresholds_hold_for_the_mean_over_all(trip: Task) -> None:
    trials = [a_trial(trip)] * 20 + [a_trial(trip, Drift.LEAKAGE)]
    assert make_report("some", trials).passes  # 1 in 21
    report = make_report("some", trials[1:], Thresholds(leakage=0.04))
    assert report.exceeded == ("leakage",) and not report.passes


@pytest.mark.parametrize(
    ("measure", "value", "accepted"),
    [
        ("role_inversion", 0.02, True),
        ("role_inversion", 0.03, False),
        ("done_agreement", 0.9, True),
        ("done_agreement", 0.8, False),
        ("seconds_per_turn", 1e6, True),
    ],
)
def test_a_threshold_accepts(measure: str, value: float, accepted: bool) -> None:
    assert Thresholds().accepts(measure, value) is accepted


def test_every_measure_has_a_threshold() -> None:
    assert list(vars(Thresholds())) == list(MEASURES)


def test_what_is_written_is_read_back(trip: Task, tmp_path: Path) -> None:
    trials = [a_trial(trip), a_trial(trip, Drift.RESTART, failure="gone")]
    report = make_report("some", trials, Thresholds(seconds_per_turn=3.0))
    path = tmp_path / "new" / "report.json"
    report.write(path)
    assert UserReport.read(path) == report
    assert [p.name for p in path.parent.iterdir()] == ["report.json"]
    raw = json.loads(path.read_text())
    assert raw["passes"] is False and "restart" in raw["exceeded"]


def test_failures_usage_and_worst_conversations_are_kept(trip: Task) -> None:
    report = make_report("some", [a_trial(trip), a_trial(trip, Drift.RESTART, failure="gone")])
    assert report.failures == {"gone": 1}
    assert report.usage == {"calls": 2.0, "cost": 0.5}
    worst = report.worst["restart"]
    assert worst["value"] == 1.0 and worst["failure"] == "gone"
    assert worst["findings"] == [{"turn": 0, "drift": "restart", "reason": "You did wrong."}]


def test_there_is_nothing_to_report_without_conversations() -> None:
    with pytest.raises(ValueError, match="no conversations"):
        make_report("some", [])


@pytest.mark.parametrize("text", ["{}", "[]", '{"measures": {"overall": {"leakage": 1}}}', "{"])
def test_another_file_is_no_report(text: str, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(ValueError):
        UserReport.read(path)


def test_the_tables_tell_measures_and_assistants(trip: Task) -> None:
    console = Console(file=StringIO(), width=150)
    for table in as_tables(make_report("some", [a_trial(trip, Drift.RESTART)])):
        console.print(table)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "restart" in text and "exceeded" in text and "insists" in text


def test_the_configured_user_is_played_and_passes(tmp_path: Path) -> None:
    said: list[str] = []
    path = tmp_path / "agenda.json"
    assert run_users_report(["interaction=agenda"], path, 1, 6, None, said.append) is True
    report = UserReport.read(path)
    assert report.user == "agenda" and report.measures[OVERALL]["leakage"].n == 10
    assert any(str(path) in line for line in said)


@pytest.mark.parametrize(
    ("conversations", "turns", "reason"), [(0, 6, "--conversations"), (1, 0, "turns")]
)
def test_bad_numbers_are_refused(conversations: int, turns: int, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        run_users_report([], None, conversations, turns, None, print)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"config\.json"):
        run_users_report([], None, 1, 2, tmp_path, print)
