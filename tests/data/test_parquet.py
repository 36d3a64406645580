"""Parquet files: the same bytes for the same rows, and faults named before use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset

from data.example import Example
from data.make import make_data
from data.parquet import SCHEMA, DataError, check_file, check_splits, read_prompts, write_rows
from interaction.conversation import Conversation
from interaction.task import Goal, Task


def example(name: str) -> Example:
    prompt = Conversation().add("system", "s").add("user", f"Help with {name}.")
    return Example(Task(name, "test", Goal(name)), prompt, "opening", "test", "test")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.parquet", [example("a"), example("b")], "train")


def broken(file: Path, **changes: Any) -> Path:
    """Write the file again with columns of its second row changed."""
    rows = pq.read_table(file).to_pylist()
    rows[1] |= changes
    pq.write_table(pa.Table.from_pylist(rows), file)
    return file


def test_what_was_written_passes_the_check_and_reads_back(file: Path) -> None:
    assert check_file(file) == 2
    assert [p.messages[-1].content for p in read_prompts(file)] == ["Help with a.", "Help with b."]


def test_the_same_rows_give_the_same_bytes_and_leave_nothing_else(
    file: Path, tmp_path: Path
) -> None:
    again = write_rows(tmp_path / "again.parquet", [example("a"), example("b")], "train")
    assert again.read_bytes() == file.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again.parquet", "rows.parquet"]


def test_the_files_load_in_datasets_and_in_verls_own_dataset(file: Path, smollm2: Path) -> None:
    from omegaconf import OmegaConf
    from transformers import AutoTokenizer
    from verl.utils.dataset.rl_dataset import RLHFDataset

    assert load_dataset("parquet", data_files=str(file))["train"].num_rows == 2
    config = OmegaConf.create({"filter_overlong_prompts": False})
    rows = RLHFDataset(str(file), AutoTokenizer.from_pretrained(smollm2), config)
    assert rows[1]["raw_prompt"][-1]["content"] == "Help with b."
    assert rows[1]["agent_name"] == "collabllm" and rows[1]["index"] == 1


def test_no_rows_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no rows to write"):
        write_rows(tmp_path / "rows.parquet", [], "train")
    assert list(tmp_path.iterdir()) == []


def test_a_truncated_file_is_named(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"rows\.parquet: not a whole parquet file"):
        check_file(file)


def test_an_empty_table_is_named(file: Path) -> None:
    pq.write_table(SCHEMA.empty_table(), file)
    with pytest.raises(DataError, match="is empty"):
        check_file(file)


@pytest.mark.parametrize("column", SCHEMA.names)
def test_a_missing_column_is_named(file: Path, column: str) -> None:
    pq.write_table(pq.read_table(file).drop_columns([column]), file)
    with pytest.raises(DataError, match=f"column '{column}' is missing"):
        check_file(file)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"prompt": [{"role": "assistant", "content": "x"}]}, "must end with a user message"),
        ({"prompt": [{"role": "tool", "content": "x"}]}, "role must be one of"),
        ({"prompt": []}, "must end with a user message"),
        ({"prompt": [{"role": "user", "content": " "}]}, "a message is empty"),
        ({"agent_name": "tool_agent"}, "agent_name: must be 'collabllm'"),
        (
            {"extra_info": {"index": 1, "split": "train", "context": "o", "task": None}},
            "'task' is missing",
        ),
        (
            {"extra_info": {"index": 1, "split": "train", "context": "o", "task": "{}"}},
            "not a task",
        ),
    ],
)
def test_a_bad_row_is_named_with_its_reason(
    file: Path, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(DataError, match=f"row 1: .*{reason}"):
        check_file(broken(file, **changes))


def test_a_problem_in_both_splits_is_an_error(file: Path, tmp_path: Path) -> None:
    other = write_rows(tmp_path / "val.parquet", [example("b"), example("c")], "validation")
    with pytest.raises(DataError, match="share 1 problems, e.g. 'b'"):
        check_splits(file, other)


def test_data_is_made_once_per_setting_and_found_again(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "train_rows": 6, "validation_rows": 4, "contexts": {"opening": 1.0}, "system_prompt": "s", "seed": 1,
    }  # fmt: skip
    first = make_data("planning", options, tmp_path)
    again = make_data("planning", options, tmp_path)
    other = make_data("planning", {**options, "seed": 2}, tmp_path)
    assert first.fresh and not again.fresh and other.fresh
    assert first.train == again.train != other.train


@pytest.mark.parametrize(
    ("family", "options", "reason"),
    [
        ("poetry", {}, "unknown task family 'poetry'; there are: math, planning"),
        ("math", {"source": "/none.jsonl"}, "no such file"),
        ("planning", {"colour": "red"}, "unexpected keyword"),
    ],
)
def test_what_cannot_be_made_is_refused(
    tmp_path: Path, family: str, options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(DataError, match=reason):
        make_data(family, options, tmp_path)
