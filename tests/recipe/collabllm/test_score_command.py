"""`collabllm score`: stored conversations are scored, or told why not, without verl."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.parquet import write_rows
from evaluation.bootstrap import mean_interval
from interaction.task import Task
from recipe.collabllm.json_lines import JsonLine
from recipe.collabllm.metric_choice import ChoiceError, choose_metrics, parse_weights
from recipe.collabllm.record import FutureRecord
from recipe.collabllm.score_report import MOST_BOOTSTRAPPED, interval, make_report
from recipe.collabllm.scored_conversation import Outcome, ScoredConversation
from reward.registry import metric_names
from tests.data.test_parquet import example
from tests.recipe.collabllm.conftest import record
from tests.recipe.collabllm.test_cli import Terminal, terminal
from tests.serving.fault_server import fault_server, says

__all__ = ["terminal"]

ASKED = {"role": "user", "content": "What is 6 times 7?"}
RIGHT = {"role": "assistant", "content": "The answer is 42."}
ACCURACY = ("--weights", "accuracy=1")

NO_JUDGE = ("--judge-url", "http://127.0.0.1:1/v1", "--judge-model", "m")

BLOCKED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"verl", "ray", "torch", "transformers", "hydra"}:
            raise ImportError(f"no module named {name} here")

sys.meta_path.insert(0, Blocker())
from recipe.collabllm.cli import main
main()
"""


def stored(*said: Mapping[str, str], **more: Any) -> dict[str, Any]:
    return {"messages": list(said), "ground_truth": "42", **more}


def write(path: Path, *lines: Any) -> str:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return str(path)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def without_verl(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command where verl, ray, torch, transformers and hydra are not installed."""
    command = [sys.executable, "-c", BLOCKED, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def test_conversations_are_scored_where_verl_is_not_installed(tmp_path: Path) -> None:
    wrong = {"role": "assistant", "content": "The answer is 41."}
    file = write(tmp_path / "c.jsonl", stored(ASKED, RIGHT), stored(ASKED, wrong))
    words = ["--weights", "accuracy=2,token_amount=0.25", "--output", "o.jsonl", "--json", "r.json"]
    told = without_verl(tmp_path, "score", file, *words)
    assert told.returncode == 0, told.stderr
    assert "counts words" in told.stdout
    right, other = read(tmp_path / "o.jsonl")
    assert right["scores"] == {"accuracy": 1.0, "token_amount": -0.002}
    assert right["reward"] == 2 - 0.0005 and other["scores"]["accuracy"] == 0
    means = json.loads((tmp_path / "r.json").read_text())["means"]
    assert means["accuracy"] == {"mean": 0.5, "low": 0.0, "high": 1.0, "n": 2}


def test_what_cannot_be_scored_is_told_and_is_no_number(tmp_path: Path, terminal: Terminal) -> None:
    lines = [stored(ASKED, RIGHT), stored(ASKED, RIGHT, ASKED), stored(), stored(ASKED)]
    file = write(tmp_path / "c.jsonl", *lines)
    told = terminal.collabllm("score", file, *ACCURACY, "--output", "o.jsonl", "--json", "r.json")
    assert told.code == 0 and "3 of 4 could not be scored" in told.out
    scored, *failed = read(tmp_path / "o.jsonl")
    assert scored["reward"] == 1
    assert [one["reward"] for one in failed] == [None] * 3
    reasons = ["ends on a user turn", "is empty", "no policy turn"]
    assert all(reason in one["failure"] for reason, one in zip(reasons, failed, strict=True))
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["means"]["R*"]["n"] == 1 and len(report["failures"]) == 3


def test_a_conversation_whose_user_left_is_scored(tmp_path: Path, terminal: Terminal) -> None:
    bye = {"role": "user", "content": "Thanks."}
    file = write(tmp_path / "c.jsonl", stored(ASKED, RIGHT, bye, stop="user_done"))
    assert terminal.collabllm("score", file, *ACCURACY, "--output", "o.jsonl").code == 0
    assert read(tmp_path / "o.jsonl")[0]["reward"] == 1


def test_a_file_of_which_nothing_can_be_scored_is_exit_code_1(
    tmp_path: Path, terminal: Terminal
) -> None:
    file = write(tmp_path / "c.jsonl", stored(ASKED))
    told = terminal.collabllm("score", file, *ACCURACY)
    assert told.code == 1 and "1 of 1 could not be scored" in told.out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "name them with --task, --metrics or --weights"),
        (["--weights", "speed=1"], "unknown metric 'speed'"),
        (["--weights", "accuracy=0"], "are all 0"),
        (["--weights", "accuracy=nan"], "accuracy.weight=nan: must be finite"),
        (["--weights", "accuracy=1.7e308,bleu=1.7e308"], "R* is not finite"),
        (["--weights", "accuracy=high"], "accuracy=high: must be a number"),
        (["--weights", "accuracy=1,accuracy=2"], "accuracy is there twice"),
        (["--metrics", "poetry"], "no such group; there are math"),
        (["--metrics", "none.yaml"], "none.yaml: cannot be read"),
        (["--metrics", "c.jsonl.yaml"], "expected metrics as"),
        (["--weights", "interactivity=1"], "name one with --judge-url"),
        ([*ACCURACY, "--judge-url", "http://localhost/v1"], "--judge-model is missing"),
        ([*ACCURACY, "--judge", "c.jsonl.yaml"], "expected keys such as"),
        (
            ["--weights", "interactivity=1", *NO_JUDGE],
            "at http://127.0.0.1:1/v1 gave no answer",
        ),
        ([*ACCURACY, "--tokenizer", "none"], "--tokenizer none: no such folder"),
        ([*ACCURACY, "--output", "c.jsonl"], "must be another file"),
        ([*ACCURACY, "--output", "none/o.jsonl"], "there is no folder none"),
    ],
)
def test_a_request_that_cannot_work_is_told_before_anything_is_scored(
    tmp_path: Path, terminal: Terminal, words: list[str], reason: str
) -> None:
    (tmp_path / "c.jsonl.yaml").write_text("- accuracy")
    file = write(tmp_path / "c.jsonl", stored(ASKED, RIGHT))
    told = terminal.collabllm("score", file, *words)
    assert told.code == 2 and reason in told.err and "Traceback" not in told.err
    assert sorted(tmp_path.iterdir()) == [tmp_path / "c.jsonl", tmp_path / "c.jsonl.yaml"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (stored(ASKED, RIGHT, ground_truth=""), "metric accuracy: task 'line 2'"),
        (stored(ASKED, RIGHT, ground_truth="as long as it takes"), "metric accuracy"),
        ({"messages": [ASKED, RIGHT], "task": {"ground_thruth": "42"}}, "'task.ground_thruth'"),
        (stored(ASKED, RIGHT, task={}), "'ground_truth': stands beside 'task'"),
        (stored(ASKED, RIGHT, given=3), "'given': must be a whole number"),
        (stored(ASKED, RIGHT, given=True), "'given': must be a whole number"),
        (stored(ASKED, RIGHT, stop="bored"), "'stop': must be one of user_done"),
        (stored(ASKED, {"role": "tool", "content": "x"}), "message 1: role must be one of"),
        (stored(ASKED, {"role": "assistant"}), "message 1 has no 'content'"),
        (stored(ASKED, {"role": "assistant", "content": None}), "message 1: content must be"),
        (stored(ASKED, RIGHT, goal=[1]), "'goal': must be a text"),
        (stored(ASKED, RIGHT, goal={"facts": [{"slot": "x"}]}), "'goal': not a task"),
        (stored(ASKED, RIGHT, metadata=3), "'metadata': must be an object"),
        ({"prompt": [ASKED]}, "'messages': is missing"),
        ({"futures": []}, "'futures': not a record"),
        ([1], "must be a JSON object"),
        (stored(ASKED, RIGHT, metadata={"x": float("nan")}), "NaN is no JSON number"),
        (stored(ASKED, {"role": "assistant", "content": "\ud800"}), "not a line of JSON in UTF-8"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(
    tmp_path: Path, terminal: Terminal, line: Any, reason: str
) -> None:
    file = write(tmp_path / "c.jsonl", stored(ASKED, RIGHT), line)
    told = terminal.collabllm("score", file, *ACCURACY, "--output", "o.jsonl")
    assert told.code == 2 and "c.jsonl: line 2: " in told.err and reason in told.err, told.err
    assert not (tmp_path / "o.jsonl").exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "is empty"), (b"\xff\n", "line 1: not a line"), (b"[" * 99999, "line 1: not a line")],
)
def test_a_file_that_is_no_json_lines_is_refused(
    tmp_path: Path, terminal: Terminal, content: bytes, reason: str
) -> None:
    (tmp_path / "c.jsonl").write_bytes(content)
    told = terminal.collabllm("score", "c.jsonl", *ACCURACY)
    assert told.code == 2 and reason in told.err


def test_a_runs_records_are_scored_again_with_the_tasks_of_its_data(
    tmp_path: Path, terminal: Terminal, trip: Task
) -> None:
    row = replace(example("a"), task=trip)
    data = str(write_rows(tmp_path / "rows.parquet", [row], "train"))
    told = [{"role": "user", "content": "To Lisbon."}, {"role": "assistant", "content": "Nice."}]
    futures = [
        FutureRecord(0, 1, 2, told, stop="window", reward=9.0),
        FutureRecord(1, 3, 4, failure="user: no voice"),
        FutureRecord(2, 5, 6, stop="window", failure="metric: no judge"),
    ]
    lines = [record(task_id=trip.task_id, futures=futures)]
    lines += [record(task_id=trip.task_id, session=1, fault="length", futures=[], mr=-1)]
    lines += [record(task_id=trip.task_id, session=2, futures=[], mr=None)]
    file = tmp_path / "step.jsonl"
    file.write_text("".join(f"{line.to_json()}\n" for line in lines))
    words = ["--weights", "goal_elicited=3", "--output", "o.jsonl", "--json", "r.json"]
    ended = terminal.collabllm("score", str(file), "--data", data, *words)
    assert ended.code == 0, ended.err
    rewards = [(one["line"], one["k"], one["reward"]) for one in read(tmp_path / "o.jsonl")]
    assert rewards == [(1, 0, 1.0), (1, 1, None), (1, 2, 0.0), (2, None, -0.1), (3, None, None)]
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["means"]["MR"]["mean"] == pytest.approx((0.5 - 0.1) / 2)
    missing = terminal.collabllm("score", str(file), *words)
    assert missing.code == 2 and "--data FILE.parquet" in missing.err


def test_a_judge_that_gives_no_verdict_fails_its_conversation_only(
    tmp_path: Path, terminal: Terminal
) -> None:
    numbers = ("asks_for_what_is_missing", "no_needless_questions", "easy_to_work_with")
    verdict = json.dumps({"interactivity": {"reason": "so", **dict.fromkeys(numbers, 0.5)}})
    file = write(tmp_path / "c.jsonl", *[stored(ASKED, RIGHT, goal="A product.")] * 2)
    steps = says(verdict), says("good"), says("good")
    with fault_server(*steps, models=["m"]) as server:
        endpoint = {"base_url": server.url, "model": "m", "limits_dir": str(tmp_path / "limits")}
        (tmp_path / "judge.yaml").write_text(json.dumps(endpoint))
        words = ["--judge", "judge.yaml", "--concurrency", "1", "--output", "o.jsonl"]
        told = terminal.collabllm("score", file, "--weights", "interactivity=1", *words)
    assert told.code == 0, told.err
    assert [one["reward"] for one in read(tmp_path / "o.jsonl")] == [0.5, None]
    assert "1 of 2 could not be scored" in told.out and "judge: 3 calls" in told.out


def test_a_cost_at_its_cap_is_warned_of(tmp_path: Path, terminal: Terminal) -> None:
    long = {"role": "assistant", "content": "word " * 3000}
    file = write(tmp_path / "c.jsonl", stored(ASKED, long), stored(ASKED, RIGHT))
    told = terminal.collabllm("score", file, "--weights", "token_amount=1")
    assert told.code == 0 and "token_amount is at its cap in 50% of conversations" in told.out


def test_two_conversations_about_one_problem_are_one_piece_of_evidence() -> None:
    choice = choose_metrics(None, None, "accuracy=1")
    worth = [("a", 1, 0.0), ("a", 2, 1.0), ("b", 3, 1.0)]
    scored = [
        ScoredConversation(line, None, task, Outcome.SCORED, {"accuracy": score}, score)
        for task, line, score in worth
    ]
    mean = make_report(choice, scored).means["R*"]
    assert (mean.mean, mean.n) == (0.75, 2)


def test_the_interval_of_many_problems_is_that_of_a_bootstrap() -> None:
    values = [(number * 37 % 100) / 100 for number in range(MOST_BOOTSTRAPPED + 1)]
    many, few = interval(values), mean_interval(values)
    assert (many.mean, many.n) == (pytest.approx(few.mean), few.n)
    assert [many.low, many.high] == pytest.approx([few.low, few.high], abs=1e-3)


@given(st.dictionaries(st.sampled_from(metric_names()), st.floats(allow_nan=False), min_size=1))
def test_weights_are_read_as_they_were_written(weights: dict[str, float]) -> None:
    text = ", ".join(f"{name} = {weight!r}" for name, weight in weights.items())
    assert parse_weights(text) == weights


@given(st.text())
def test_any_other_text_is_refused_or_names_numbers(text: str) -> None:
    try:
        weights = parse_weights(text)
    except ChoiceError:
        return
    assert weights and all(isinstance(weight, float) for weight in weights.values())


@given(st.dictionaries(st.text(), st.text() | st.none() | st.lists(st.text()), max_size=3))
def test_any_message_is_read_or_named(message: dict[str, Any]) -> None:
    line = JsonLine(Path("f"), 7, {"messages": [message]})
    fault = ""
    try:
        line.conversation("messages")
    except ValueError as error:
        fault = str(error)
    assert not fault or fault.startswith("f: line 7: key 'messages': message 0")


def test_weights_alone_take_a_metrics_defaults_and_a_groups_options() -> None:
    choice = choose_metrics("planning", None, "token_amount=2,bleu=1")
    assert choice.weights == {"token_amount": 2.0, "bleu": 1.0}
    assert choice.options["token_amount"]["lam"] == 0.005
