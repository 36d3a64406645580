"""The command line: mistakes are one message and exit code 2, and nothing is left behind."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from data.parquet import write_rows
from recipe.collabllm import cli
from tests.data.test_parquet import example

MUTE = """
from interaction.contract import BaseInteraction


class Mute(BaseInteraction):
    async def generate_response(self, instance_id, messages, **kwargs):
        return False, "Hm.", 0.0, {}
"""


@dataclass(frozen=True)
class Told:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Terminal:
    """Runs commands in this process, in a folder of its own: a start takes 8 s."""

    patch: pytest.MonkeyPatch
    captured: pytest.CaptureFixture[str]

    def collabllm(self, *words: str) -> Told:
        self.patch.setattr(sys, "argv", ["collabllm", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = self.captured.readouterr()
        return Told(int(ended.value.code or 0), said.out, said.err)


@pytest.fixture
def terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))  # undoes what the command does to the path
    return Terminal(monkeypatch, capsys)


def test_help_names_the_commands(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "recipe.collabllm.cli", "--help"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=180)
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
        (["collabllm.metrics.goal_elicited.weight=nan"], "goal_elicited.weight=nan"),
        (["metrics=paper_math"], "accuracy, interactivity asks a judge"),
        (
            ["judge=llm", "collabllm.judge_endpoint.base_url=http://127.0.0.1:1/v1"],
            "collabllm.judge_endpoint: the judge model",
        ),
        (["task=math"], "set data.source=VALUE"),
        (["task=math", "data.source=none.jsonl"], "none.jsonl: no such file"),
        (["actor_rollout_ref.model.path=none"], "not a Hugging Face model folder"),
        (["data.train_files=a.parquet"], "set both data.train_files and data.val_files"),
        (["data.train_files=a.parquet", "data.val_files=b.parquet"], "a.parquet: no such file"),
    ],
)
def test_a_mistake_is_told_before_work_begins(
    tmp_path: Path, terminal: Terminal, words: list[str], reason: str
) -> None:
    backend = [] if "backend=tpu" in words else ["backend=cpu"]
    told = terminal.collabllm("train", *backend, *words)
    assert told.code == 2, told.err
    assert reason in told.err and "Traceback" not in told.err
    assert not list(tmp_path.rglob("checkpoints")) and not list(tmp_path.rglob("*.safetensors"))


def test_a_file_can_be_checked(tmp_path: Path, terminal: Terminal) -> None:
    file = write_rows(tmp_path / "rows.parquet", [example("a")], "train")
    assert "1 rows, all usable" in terminal.collabllm("data", "check", str(file)).out
    file.write_bytes(b"PAR1")
    told = terminal.collabllm("data", "check", str(file))
    assert told.code == 2 and "not a whole parquet file" in told.err


def test_the_configuration_can_be_printed(terminal: Terminal) -> None:
    told = terminal.collabllm("config", "backend=cpu", "collabllm.K=3")
    assert told.code == 0 and "K: 3" in told.out


def test_a_report_on_a_user_that_cannot_be_reached_is_not_begun(
    tmp_path: Path, terminal: Terminal
) -> None:
    nowhere = "collabllm.user_endpoint.base_url=http://127.0.0.1:1/v1"
    told = terminal.collabllm("users", "report", "--user", "llm", "--json", "r.json", nowhere)
    assert told.code == 2 and "at http://127.0.0.1:1/v1 gave no answer" in told.err
    assert not (tmp_path / "r.json").exists()


def test_a_broken_user_fails_its_report(tmp_path: Path, terminal: Terminal) -> None:
    (tmp_path / "mute.py").write_text(MUTE)
    (tmp_path / "users.yaml").write_text("interaction: [{name: mute, class_name: mute.Mute}]")
    words = ["collabllm.interaction_config_path=users.yaml", "collabllm.user=mute"]
    told = terminal.collabllm("users", "report", "--conversations", "1", *words)
    assert told.code == 1 and "past the threshold" in told.out and "withheld" in told.out
