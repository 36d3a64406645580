"""The command line: mistakes are one message and exit code 2, and nothing is left behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from data.parquet import write_rows
from tests.data.test_parquet import example


def collabllm(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "recipe.collabllm.cli", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=180)


def test_help_names_the_commands(tmp_path: Path) -> None:
    told = collabllm(tmp_path, "--help")
    assert told.returncode == 0
    assert all(
        command in told.stdout
        for command in ("train", "model", "serve", "chat", "users", "data", "config")
    )


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["foo.bar=1"], "there is no key 'foo.bar'"),
        (["task=poetry"], "available: math planning"),
        (["preset=huge"], "no such choice"),
        (["backend=tpu"], "no such choice"),
        (["collabllm.K=0"], "collabllm.K=0"),
        (["+collabllm.metrics.nope.weight=1"], "unknown metric 'nope'"),
        (["collabllm.user=bob"], "no such user"),
        (["collabllm.interaction.0.config.personas=[bob]"], "unknown persona 'bob'"),
        (
            ["interaction=llm", "collabllm.user_endpoint.base_url=http://127.0.0.1:1/v1"],
            "at http://127.0.0.1:1/v1 gave no answer",
        ),
        (
            ["interaction=llm", "collabllm.user_endpoint.api_key_env=NO_SUCH_KEY"],
            "the environment variable NO_SUCH_KEY is not set",
        ),
        (["interaction=llm", "+collabllm.user_endpoint.speed=9"], "endpoint.speed: no such key"),
        (["task=math"], "set data.source=VALUE"),
        (["task=math", "data.source=none.jsonl"], "none.jsonl: no such file"),
        (["actor_rollout_ref.model.path=none"], "not a Hugging Face model folder"),
        (["data.train_files=a.parquet"], "set both data.train_files and data.val_files"),
        (["data.train_files=a.parquet", "data.val_files=b.parquet"], "a.parquet: no such file"),
    ],
)
def test_a_mistake_is_told_before_work_begins(
    tmp_path: Path, words: list[str], reason: str
) -> None:
    told = (
        collabllm(tmp_path, "train", "backend=cpu", *words)
        if "backend=tpu" not in words
        else (collabllm(tmp_path, "train", *words))
    )
    assert told.returncode == 2, told.stderr
    assert reason in told.stderr and "Traceback" not in told.stderr
    assert not list(tmp_path.rglob("checkpoints")) and not list(tmp_path.rglob("*.safetensors"))


def test_a_file_can_be_checked(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.parquet", [example("a")], "train")
    assert "1 rows, all usable" in collabllm(tmp_path, "data", "check", str(file)).stdout
    file.write_bytes(b"PAR1")
    told = collabllm(tmp_path, "data", "check", str(file))
    assert told.returncode == 2 and "not a whole parquet file" in told.stderr


def test_the_configuration_can_be_printed(tmp_path: Path) -> None:
    told = collabllm(tmp_path, "config", "backend=cpu", "collabllm.K=3")
    assert told.returncode == 0 and "K: 3" in told.stdout
