"""`collabllm users report`: plays the configured user and judges how it plays a person.

Promises: the user is the one that training would use; problems come from the held-out domains;
what is wrong with the request is found before anything is played. Knows nothing of measures.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from omegaconf import OmegaConf
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

from data.planning.domains import load_domains
from data.planning.problem import distinct_problems
from evaluation.scripted_assistants import SCRIPTED, MakeAssistant
from evaluation.user_report import UserReport, as_tables, make_report
from evaluation.user_trial import TrialOptions, play_trials
from interaction.seeds import derive_random
from interaction.task import Task
from interaction.user import SimulatedUser
from recipe.collabllm.configuration import load_configuration
from recipe.collabllm.preflight import check_user
from recipe.collabllm.settings import Settings, read_settings
from serving.engine_policy import engine_policy

_TABLE_WIDTH = 150
_AT_A_TIME = 8


def run_users_report(
    words: Sequence[str],
    json_path: Path | None,
    conversations: int,
    turns: int,
    assistant_model: Path | None,
    say: Callable[[str], None],
) -> bool:
    """Play the configured user, print the report, and return whether the user passes.

    Args:
        words: `key=value` as hydra takes them, e.g. `interaction=llm`.
        json_path: Where the report goes too; None to print it only.
        conversations: Conversations with each assistant.
        turns: Most turns of the user after its opening.
        assistant_model: Hugging Face folder of one more assistant; None for scripts only.
        say: Told what is being done.

    Raises:
        ValueError: If something cannot work; nothing has been played by then.
    """
    if conversations < 1:
        raise ValueError(f"--conversations {conversations}: must be at least 1")
    config = load_configuration(words)
    settings = read_settings(OmegaConf.to_container(config.collabllm, resolve=True))
    check_user(settings)
    report = _played(settings, turns, conversations, assistant_model, say)
    _show(report)
    if json_path is not None:
        report.write(json_path)
        say(f"report: {json_path}")
    if report.exceeded:
        say(f"past the threshold: {', '.join(report.exceeded)}")
    return report.passes


def _played(
    settings: Settings,
    turns: int,
    conversations: int,
    assistant_model: Path | None,
    say: Callable[[str], None],
) -> UserReport:
    user, tasks = settings.make_user(), _tasks(settings.seed, conversations)
    with _assistants(assistant_model) as assistants:
        say(f"playing {conversations} conversations with each of {len(assistants)} assistants")
        options = _options(settings, user, turns)
        with _progress(len(tasks) * len(assistants)) as played:
            trials = asyncio.run(play_trials(user, tasks, assistants, options, played))
    return make_report(settings.user, trials)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], object]]:
    """Show how many conversations are played and how long the rest will take."""
    columns = (*Progress.get_default_columns()[:-1], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("conversations", total=total)
        yield lambda: progress.advance(task)


def _tasks(seed: int, count: int) -> list[Task]:
    problems = distinct_problems(load_domains(held_out=True), derive_random(seed, "users report"))
    return list(islice(problems, count))


@contextmanager
def _assistants(model: Path | None) -> Iterator[Mapping[str, MakeAssistant]]:
    """Give the scripted assistants and, while the block lasts, the model."""
    if model is None:
        yield SCRIPTED
        return
    with engine_policy(model, _AT_A_TIME) as policy:
        yield {**SCRIPTED, "model": lambda task: policy}


def _options(settings: Settings, user: SimulatedUser, turns: int) -> TrialOptions:
    return TrialOptions(
        turns=turns,
        concurrency=_AT_A_TIME,
        max_tokens=settings.max_future_tokens,
        timeout_s=settings.user_timeout_s,
        seed=settings.seed,
        language=getattr(user, "language", lambda seed: "en"),
    )


def _show(report: UserReport) -> None:
    console = Console()
    console.width = max(console.width, _TABLE_WIDTH)
    for table in as_tables(report):
        console.print(table)
