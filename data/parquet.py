"""Parquet files of training rows: written whole, checked before use.

Promises: the same rows give the same bytes; a file is there whole or not at all; a check names
file, row, column and remedy. Knows nothing of families.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from data.example import Example, Split
from interaction.conversation import Conversation
from interaction.task import Task

SCHEMA = pa.schema(
    [
        ("prompt", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
        ("data_source", pa.string()),
        ("ability", pa.string()),
        ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
        (
            "extra_info",
            pa.struct(
                [
                    ("index", pa.int64()),
                    ("split", pa.string()),
                    ("context", pa.string()),
                    ("task", pa.string()),
                ]
            ),
        ),
        ("agent_name", pa.string()),
    ]
)


class DataError(ValueError):
    """Data that cannot be used; the message names file, row, column and remedy."""


def write_rows(path: str | Path, examples: Sequence[Example], split: Split) -> Path:
    """Write examples to a parquet file.

    Raises:
        DataError: If there are none.
    """
    path = Path(path)
    if not examples:
        raise DataError(f"{path}: no rows to write; ask for more, or give a larger source")
    rows = [example.to_row(index, split) for index, example in enumerate(examples)]
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), partial)
    partial.replace(path)
    return path


def check_file(path: str | Path) -> int:
    """Check that a file can be trained on; return its number of rows.

    Raises:
        DataError: If it cannot be read, is empty, or a column or row is not as it must be.
    """
    path = Path(path)
    table = _read(path)
    for field in SCHEMA:
        if field.name not in table.column_names:
            raise DataError(
                f"{path}: column {field.name!r} is missing (it has {table.column_names}); "
                "make the file with `collabllm data make`"
            )
    if table.num_rows == 0:
        raise DataError(f"{path}: is empty; make it with `collabllm data make`")
    for number, row in enumerate(_rows(table)):
        try:
            _check_row(row)
        except (DataError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{path}: row {number}: {error}") from error
    return int(table.num_rows)


def check_splits(train: str | Path, validation: str | Path) -> None:
    """Check that no problem is in both files.

    Raises:
        DataError: If one is; it names the first.
    """
    shared = task_ids(train) & task_ids(validation)
    if shared:
        raise DataError(
            f"{train} and {validation} share {len(shared)} problems, e.g. {min(shared)!r}: "
            "validation would measure memory; split by task_id"
        )


def task_ids(path: str | Path) -> set[str]:
    """Return the problems of a file."""
    return {task.task_id for task in read_tasks(path)}


def read_tasks(path: str | Path) -> Iterator[Task]:
    """Yield each row's task."""
    for row in _rows(_read(Path(path), columns=["extra_info"])):
        yield Task.from_json(row["extra_info"]["task"])


def read_prompts(path: str | Path) -> Iterator[Conversation]:
    """Yield each row's prompt."""
    for row in _rows(_read(Path(path), columns=["prompt"])):
        yield Conversation.from_dicts(row["prompt"])


def _read(path: Path, columns: list[str] | None = None) -> pa.Table:
    if not path.is_file():
        raise DataError(f"{path}: no such file; make it with `collabllm data make`")
    try:
        return pq.read_table(path, columns=columns)
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{path}: not a whole parquet file ({error}); delete it and make it again"
        ) from error


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in table.to_batches(max_chunksize=1024):
        yield from batch.to_pylist()


def _check_row(row: dict[str, Any]) -> None:
    prompt = Conversation.from_dicts(row["prompt"])
    if prompt.last is None or prompt.last.role != "user":
        raise DataError("column prompt: must end with a user message")
    if any(not message.content.strip() for message in prompt.messages):
        raise DataError("column prompt: a message is empty")
    if row["agent_name"] != "collabllm":
        raise DataError(f"column agent_name: must be 'collabllm', is {row['agent_name']!r}")
    for key in ("index", "split", "context", "task"):
        if row["extra_info"].get(key) is None:
            raise DataError(f"column extra_info: key {key!r} is missing")
    Task.from_json(row["extra_info"]["task"])
