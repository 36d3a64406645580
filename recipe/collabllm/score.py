"""`collabllm score`: what stored conversations are worth, without verl.

Promises: what is wrong with the request or the file is told before anything is scored; what is
written is there whole or not at all; a conversation that cannot be scored is told by its reason.
Knows nothing of how metrics score.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from interaction.seeds import derive_seed
from interaction.task import Task
from recipe.collabllm.chat_user import plain
from recipe.collabllm.endpoint_choice import EndpointChoice, check_reached, spent
from recipe.collabllm.json_lines import FileFault
from recipe.collabllm.metric_choice import ChoiceError, MetricChoice, choose_metrics
from recipe.collabllm.run_folder import write_json, write_text
from recipe.collabllm.score_report import ScoreReport, make_report
from recipe.collabllm.scored_conversation import ConversationScorer, ScoredConversation
from recipe.collabllm.stored_conversation import StoredConversation, read_conversations
from recipe.collabllm.time_left import time_left
from recipe.collabllm.token_count import token_counter
from reward.judge.judge import Judge
from reward.metric import ChecksTask, TaskUnfit
from serving.chat_client import ChatClient

Say = Callable[[str], None]

_SHOWN_FAILURES = 10


@dataclass(frozen=True)
class ScoreRequest:
    """What is to be scored, by what; see docs/offline.md."""

    file: Path
    task: str | None = None
    metrics: str | None = None
    weights: str | None = None
    data: Path | None = None
    judge: EndpointChoice = field(default_factory=lambda: EndpointChoice("judge"))
    tokenizer: Path | None = None
    output: Path | None = None
    json: Path | None = None
    concurrency: int = 32
    seed: int = 1


def score(request: ScoreRequest, say: Say) -> bool:
    """Score a file, show and write what came out; return whether anything could be scored.

    Raises:
        ValueError: If the request or the file cannot be used; nothing has been scored by then.
    """
    choice = choose_metrics(request.task, request.metrics, request.weights)
    for written in (request.output, request.json):
        check_writable(written, (request.file, request.data))
    stored = read_conversations(request.file, request.data, request.task or "")
    check_tasks(request.file, stored, choice)
    scorer = ConversationScorer(
        choice,
        token_counter(request.tokenizer, choice.metrics, say),
        open_judge(request.judge, choice, request.seed),
    )
    say(f"scoring {len(stored)} conversations of {escape(str(request.file))}")
    with time_left("conversations", len(stored)) as scored:
        results = asyncio.run(scorer.score_all(stored, request.concurrency, scored))
    report = make_report(choice, results)
    _write(request, report, results, say)
    _show(report, say)
    if scorer.judge is not None and isinstance(scorer.judge.model, ChatClient):
        say(spent("judge", scorer.judge.model.totals.used))
    return not report.all_failed


def check_writable(file: Path | None, read: Sequence[Path | None]) -> None:
    """Check that a file may be written: its folder is there, and it is none of those read.

    Raises:
        ChoiceError: If it may not.
    """
    if file is None:
        return
    if not file.parent.is_dir():
        raise ChoiceError(f"{file}: there is no folder {file.parent}; make it first")
    if file.is_dir() or any(other and other.resolve() == file.resolve() for other in read):
        raise ChoiceError(f"{file}: must be another file than those that are read, and no folder")


def check_tasks(
    file: Path, conversations: Sequence[StoredConversation], choice: MetricChoice
) -> None:
    """Check that tasks have what the metrics need.

    Raises:
        FileFault: If one has not; names file, line, metric, key and remedy.
    """
    for stored in conversations:
        check_task(file, stored.line, stored.task, choice)


def check_task(file: Path, line: int, task: Task, choice: MetricChoice) -> None:
    """Check one task; see `check_tasks`."""
    for name, metric in choice.metrics.items():
        if not isinstance(metric, ChecksTask):
            continue
        try:
            metric.check(task)
        except TaskUnfit as error:
            raise FileFault(f"{file}: line {line}: metric {name}: {error}") from error


def open_judge(chosen: EndpointChoice, choice: MetricChoice, seed: int) -> Judge | None:
    """Return the judge that the metrics need, reached; None if they need none.

    Raises:
        ChoiceError: If it is missing or does not answer.
    """
    config = chosen.config(temperature=0.0)
    if not choice.judged:
        return None
    if config is None:
        raise ChoiceError(
            f"{', '.join(choice.judged)} asks a judge: name one with --judge-url and "
            "--judge-model, or leave it out with --weights"
        )
    asyncio.run(check_reached([chosen.client(config)]))
    # As in training: kept answers are found again.
    return Judge(chosen.client(config), key=derive_seed(seed, "judge").to_bytes(8, "big"))


def _write(
    request: ScoreRequest, report: ScoreReport, results: Sequence[ScoredConversation], say: Say
) -> None:
    if request.output:
        write_text(request.output, "".join(f"{result.to_json()}\n" for result in results))
        say(f"scores: {escape(str(request.output))}")
    if request.json:
        write_json(request.json, report.to_dict())
        say(f"report: {escape(str(request.json))}")


def _show(report: ScoreReport, say: Say) -> None:
    if report.means:
        Console().print(report.table())
    if report.floored:
        say(f"{report.floored} replies were unusable and have the floor")
    for warning in report.warnings:
        say(f"[yellow]{escape(warning)}[/yellow]")
    if report.failures:
        say(f"{len(report.failures)} of {report.conversations} could not be scored")
    for failed in report.failures[:_SHOWN_FAILURES]:
        future = "" if failed.k is None else f", future {failed.k}"
        say(f"  line {failed.line}{future}: {escape(plain(str(failed.failure)))}")
    if len(report.failures) > _SHOWN_FAILURES:
        say("  ... and more; --output FILE lists all")
