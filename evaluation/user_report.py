"""The report on a simulated user: measures, what is still acceptable, worst conversations.

Promises: a user passes by the means over all its conversations; a file is whole or absent, and
what is read back equals what was written. Knows nothing of how conversations were played.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from rich.table import Table

from evaluation.bootstrap import Interval
from evaluation.user_quality import MEASURES, OVERALL, measure_trials, worst_trial
from evaluation.user_trial import Trial
from interaction.user import add_usage


@dataclass(frozen=True)
class Thresholds:
    """What is still acceptable, as a mean over all conversations; None does not judge.

    Attributes:
        role_inversion: A user that turns into the assistant makes the rest of its
            conversation worthless: at most one turn in 50.
        leakage: What comes unasked makes asking worth less: one turn in 20.
        repetition: Costs a turn but misleads little: one in 20.
        restart: As bad as role inversion.
        empty_or_malformed: A failure costs a future; the training itself stops at many more.
        invented_facts: Rewards a policy for what the user does not want.
        language: Turns in another language than the person's.
        withheld: What a user does not tell when asked, no policy can get out of it.
        early_stop: Share of helpful conversations that the user leaves too early.
        never_stopping: Share of complete answers that it does not take.
        done_agreement: At least this share of endings must be right.
        words_per_turn: People write short messages.
        seconds_per_turn: Not judged unless asked for: it depends on the machine.
        cost_per_turn: Not judged unless asked for: it depends on the budget.
    """

    role_inversion: float | None = 0.02
    leakage: float | None = 0.05
    repetition: float | None = 0.05
    restart: float | None = 0.02
    empty_or_malformed: float | None = 0.02
    invented_facts: float | None = 0.02
    language: float | None = 0.02
    withheld: float | None = 0.1
    early_stop: float | None = 0.1
    never_stopping: float | None = 0.1
    done_agreement: float | None = 0.9
    words_per_turn: float | None = 80.0
    seconds_per_turn: float | None = None
    cost_per_turn: float | None = None

    def accepts(self, measure: str, value: float) -> bool:
        """Return whether a measure's mean is acceptable."""
        limit = getattr(self, measure)
        if limit is None:
            return True
        return bool(value >= limit if measure == "done_agreement" else value <= limit)


@dataclass(frozen=True)
class UserReport:
    """What a trial found.

    Attributes:
        user: The user's name.
        measures: Means by assistant ("overall" for all) and measure.
        thresholds: What is acceptable.
        failures: How often the user failed, by reason.
        usage: What it used in all, by name.
        worst: For each measure the conversation that is worst by it.
    """

    user: str
    measures: Mapping[str, Mapping[str, Interval]]
    thresholds: Thresholds
    failures: Mapping[str, int] = field(default_factory=dict)
    usage: Mapping[str, float] = field(default_factory=dict)
    worst: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def exceeded(self) -> tuple[str, ...]:
        """The measures past their threshold."""
        overall = self.measures[OVERALL]
        return tuple(m for m, i in overall.items() if not self.thresholds.accepts(m, i.mean))

    @property
    def passes(self) -> bool:
        """Whether every measure is acceptable."""
        return not self.exceeded

    def write(self, path: Path) -> None:
        """Write the report as JSON, under another name first."""
        told = {**asdict(self), "passes": self.passes, "exceeded": list(self.exceeded)}
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        text = json.dumps(told, indent=1, ensure_ascii=False)
        partial.write_text(text + "\n", encoding="utf-8")
        partial.replace(path)

    @classmethod
    def read(cls, path: Path) -> UserReport:
        """Read what `write` wrote.

        Raises:
            ValueError: If the file is not such a report.
        """
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            measures = {
                assistant: {name: Interval(**values) for name, values in measured.items()}
                for assistant, measured in raw["measures"].items()
            }
            own = {f.name: raw[f.name] for f in fields(cls)}
            own |= {"measures": measures, "thresholds": Thresholds(**raw["thresholds"])}
            return cls(**own)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: not a user report: {error!r}") from error


def make_report(
    user: str, trials: Sequence[Trial], thresholds: Thresholds | None = None
) -> UserReport:
    """Return the report on a user's trials.

    Args:
        thresholds: None for the defaults.

    Raises:
        ValueError: If there are no trials.
    """
    if not trials:
        raise ValueError("no conversations to report on")
    turns = [turn.usage for trial in trials for turn in trial.turns]
    used = add_usage(*turns, *(trial.lost for trial in trials))
    return UserReport(
        user=user,
        measures=measure_trials(trials),
        thresholds=thresholds or Thresholds(),
        failures=dict(Counter(t.failure for t in trials if t.failure)),
        usage=used,
        worst=dict(_worst(trials)),
    )


def _worst(trials: Sequence[Trial]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in MEASURES:
        trial = worst_trial(trials, name)
        if trial is not None:
            yield name, {"value": MEASURES[name](trial), **_told(trial)}


def _told(trial: Trial) -> dict[str, Any]:
    """Return a conversation as plain values, with what is wrong with each turn of the user."""
    return {
        "task": trial.task.task_id,
        "assistant": trial.assistant,
        "goal": trial.task.goal.summary,
        "messages": trial.conversation.to_dicts(),
        "findings": [
            {"turn": number, "drift": finding.drift.value, "reason": finding.reason}
            for number, turn in enumerate(trial.turns)
            for finding in turn.findings
        ],
        "done": trial.done,
        "failure": trial.failure,
    }


def as_tables(report: UserReport) -> list[Table]:
    """Return the report for the terminal: what is judged, then each assistant by itself."""
    return [_judged(report), _by_assistant(report)]


def _judged(report: UserReport) -> Table:
    table = Table(title=f"The simulated user {report.user}", title_justify="left")
    for column in ("measure", "mean [95%]", "threshold", "conversations", ""):
        table.add_column(column, no_wrap=True, justify="left" if column == "measure" else "right")
    for name, interval in report.measures[OVERALL].items():
        limit = getattr(report.thresholds, name)
        sign = ">=" if name == "done_agreement" else "<="
        verdict = "[red]exceeded[/red]" if name in report.exceeded else "[green]ok[/green]"
        wanted, verdict = ("", "") if limit is None else (f"{sign} {limit:g}", verdict)
        table.add_row(name, _rounded(interval), wanted, str(interval.n), verdict)
    return table


def _rounded(interval: Interval) -> str:
    return f"{interval.mean:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def _by_assistant(report: UserReport) -> Table:
    assistants = {name: own for name, own in report.measures.items() if name != OVERALL}
    table = Table(title="By assistant: means", title_justify="left")
    table.add_column("measure", no_wrap=True)
    for name in assistants:
        table.add_column(name.replace("_", " "), justify="right")
    for measure in report.measures[OVERALL]:
        means = (own.get(measure) for own in assistants.values())
        table.add_row(measure, *(f"{m.mean:.3g}" if m else "-" for m in means))
    return table
