"""`collabllm mr`: the reward of given replies, played with an endpoint or a model folder."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from interaction.conversation import Conversation
from interaction.policy import PolicyTurn
from interaction.task import Task
from interaction.user import SimulatorFailed, UserTurn
from recipe.collabllm.future_player import FuturePlayer
from recipe.collabllm.given_reply import read_replies
from recipe.collabllm.mr_settings import mr_settings
from recipe.collabllm.record import FutureRecord, Outcome, ReplyRecord
from recipe.collabllm.settings import Settings
from tests.recipe.collabllm.test_cli import Terminal, Told, terminal
from tests.recipe.collabllm.test_score_command import read, without_verl, write
from tests.serving.fault_server import Server, Step, fault_server, says, status

__all__ = ["terminal"]

PROMPT = [{"role": "user", "content": "I want to go on a trip."}]
PLANNING = ("--weights", "goal_elicited=1,token_amount=0.25", "--window", "1")


def given(task: Task, reply: str, **more: Any) -> dict[str, Any]:
    return {"task": json.loads(task.to_json()), "prompt": PROMPT, "reply": reply, **more}


def records(path: Path) -> list[ReplyRecord]:
    return [ReplyRecord.from_json(json.dumps(line)) for line in read(path)]


def endpoint(folder: Path, server: Server, **more: Any) -> str:
    """Return the file of an endpoint whose limits are its own."""
    config = {"base_url": server.url, "model": "m", "limits_dir": str(folder / "limits"), **more}
    (folder / "policy.yaml").write_text(json.dumps(config))
    return "policy.yaml"


class Offline:
    """A folder with replies, and a policy that follows a script."""

    def __init__(self, folder: Path, terminal: Terminal, server: Server) -> None:
        self.folder, self.terminal, self.server = folder, terminal, server
        self.file = folder / "replies.jsonl"

    def mr(self, *words: str, steps: Sequence[Step] = (says("Nice."),), **more: Any) -> Told:
        self.server.steps = list(steps)
        self.server.log.bodies.clear()
        policy = endpoint(self.folder, self.server, **more)
        common = ["--policy", policy, "--output", "mr.jsonl", "--K", "2"]
        return self.terminal.collabllm("mr", str(self.file), *common, *(words or PLANNING))

    @property
    def calls(self) -> int:
        return len(self.server.log.bodies)

    @property
    def records(self) -> list[ReplyRecord]:
        return records(self.folder / "mr.jsonl")


@pytest.fixture
def offline(tmp_path: Path, terminal: Terminal, trip: Task) -> Iterator[Offline]:
    lines = [given(trip, "Which city do you want to go to?"), given(trip, "Have fun!")]
    write(tmp_path / "replies.jsonl", *lines)
    with fault_server(says("Nice."), models=["m"]) as server:
        yield Offline(tmp_path, terminal, server)


def test_replies_get_their_reward_where_verl_is_not_installed(tmp_path: Path, trip: Task) -> None:
    file = write(tmp_path / "r.jsonl", given(trip, "Which city do you want to go to?"))
    with fault_server(says("How many days?"), models=["m"]) as server:
        words = ["--policy", server.url, "--policy-model", "m", "--K", "2", "--window", "2"]
        words += ["--task", "planning", "--output", "mr.jsonl"]
        told = without_verl(tmp_path, "mr", file, *words)
    assert told.returncode == 0, told.stderr
    (record,) = records(tmp_path / "mr.jsonl")
    assert record.outcome is Outcome.SCORED and record.n_valid == 2
    assert record.mr == pytest.approx(sum(f.reward or 0 for f in record.futures) / 2)
    # Two futures of two policy turns each, at most; a user may leave before.
    assert f"policy: {len(server.log.bodies)} calls" in told.stdout
    assert record.futures[0].policy_tokens == 3 * (len(record.futures[0].messages) // 2)


def test_replies_to_one_prompt_meet_the_same_users(offline: Offline) -> None:
    assert offline.mr().code == 0
    one, other = offline.records
    assert one.uid == other.uid and [one.session, other.session] == [0, 1]
    assert [f.user_seed for f in one.futures] == [f.user_seed for f in other.futures]
    assert len({f.user_seed for f in one.futures}) == 2
    seeds = [f.policy_seed for record in (one, other) for f in record.futures]
    assert len(set(seeds)) == 4


def test_a_reply_more_changes_nothing_for_the_others(tmp_path: Path, trip: Task) -> None:
    lines = [given(trip, "Which city?"), given(trip, "Have fun!")]
    one = read_replies(Path(write(tmp_path / "a", lines[0])), "")
    both = read_replies(Path(write(tmp_path / "b", *lines)), "")
    assert one[0].futures(1, 3) == both[0].futures(1, 3)
    assert one[0].futures(2, 3) != both[0].futures(1, 3)


def test_its_records_can_be_scored_with_the_tasks_it_was_given(offline: Offline) -> None:
    task = {"goal": {"summary": "A trip.", "facts": []}}
    write(offline.file, {"task": task, "prompt": PROMPT, "reply": "Which city?"})
    offline.mr()
    words = ["--data", str(offline.file), "--task", "planning", "--weights", "goal_elicited=1"]
    told = offline.terminal.collabllm("score", "mr.jsonl", *words, "--output", "scores.jsonl")
    assert told.code == 0, told.err
    assert [one["k"] for one in read(offline.folder / "scores.jsonl")] == [0, 1]


def test_what_is_done_is_not_played_again(offline: Offline) -> None:
    assert offline.mr().code == 0 and offline.calls > 0
    before = offline.records
    again = offline.mr()
    assert again.code == 0 and offline.calls == 0 and "2 of them done before" in again.out
    assert offline.records == before


def test_a_killed_run_goes_on_where_it_was(offline: Offline) -> None:
    offline.mr()
    whole, file = offline.records, offline.folder / "mr.jsonl"
    second = file.read_text().splitlines()[1]
    file.write_text(f"{second}\n{second[:80]}")
    told = offline.mr()
    assert told.code == 0 and "1 of them done before" in told.out
    assert [record.mr for record in offline.records] == [record.mr for record in whole]
    assert [record.session for record in offline.records] == [0, 1]


def test_other_settings_or_replies_are_refused_and_nothing_is_touched(offline: Offline) -> None:
    offline.mr()
    before = (offline.folder / "mr.jsonl").read_bytes()
    other = offline.mr(*PLANNING, "--seed", "2")
    assert other.code == 2 and "another seed (seed: 1, not 2)" in other.err
    write(offline.file, {**read(offline.file)[0], "reply": "Hm?"})
    gone = offline.mr()
    assert gone.code == 2 and "is of a reply that is not asked for" in gone.err
    (offline.folder / "mr.jsonl.settings.json").unlink()
    unknown = offline.mr()
    assert unknown.code == 2 and "nothing tells how it was made" in unknown.err
    assert (offline.folder / "mr.jsonl").read_bytes() == before
    assert not (offline.folder / "mr.jsonl.settings.json").exists()


def test_an_unusable_reply_gets_the_floor_and_costs_no_call(offline: Offline, trip: Task) -> None:
    write(offline.file, given(trip, " "), given(trip, "Which", finished=False))
    assert offline.mr().code == 0 and offline.calls == 0
    assert [record.fault for record in offline.records] == ["policy_invalid", "length"]
    assert {record.mr for record in offline.records} == {-0.35}


def test_a_policy_that_is_not_reached_is_no_number_and_is_tried_again(offline: Offline) -> None:
    told = offline.mr(steps=[status(403)])
    assert told.code == 1 and "2 of 2 could not be scored" in told.out
    assert "policy: the policy model m" in told.out
    assert [record.mr for record in offline.records] == [None, None]
    assert offline.mr().code == 0
    assert all(record.outcome is Outcome.SCORED for record in offline.records)


def test_a_future_ends_on_a_policy_turn_that_was_cut(offline: Offline) -> None:
    assert offline.mr(steps=[says("Let me", "length")]).code == 0
    stops = {f.stop for record in offline.records for f in record.futures if f.policy_tokens}
    assert stops == {"length"}


def test_what_the_policy_costs_is_told(offline: Offline) -> None:
    prices = {"price_per_million_prompt": 1e5, "price_per_million_completion": 2e5}
    told = offline.mr(**prices)
    cost = 2.0 * offline.calls
    assert f"policy: {offline.calls} calls" in told.out and f"cost {cost:.4f}" in told.out
    assert "variance of R*" in told.out


def test_a_user_behind_an_endpoint_plays_and_is_paid_for(offline: Offline, tmp_path: Path) -> None:
    answer = json.dumps({"message": "To Lisbon.", "done": False})
    with fault_server(says(answer), models=["u"]) as users:
        config = {"base_url": users.url, "model": "u", "limits_dir": str(tmp_path / "users")}
        (tmp_path / "user.yaml").write_text(json.dumps(config))
        told = offline.mr(*PLANNING, "--user", "llm", "--user-endpoint", "user.yaml")
    assert told.code == 0, told.err
    assert "user: 4 calls" in told.out and "policy: 4 calls" in told.out
    said = [f.messages[0]["content"] for record in offline.records for f in record.futures]
    assert said == ["To Lisbon."] * 4


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"prompt": PROMPT, "reply": "x"}, "'task': is missing"),
        ({"task": {"ground_truth": "4"}, "prompt": PROMPT, "reply": "x"}, "'task.goal'"),
        ({"task": {"goal": "g"}, "prompt": [], "reply": "x"}, "'prompt': must end with a user"),
        ({"task": {"goal": "g"}, "reply": "x"}, "'prompt': must be a list"),
        ({"task": {"goal": "g"}, "prompt": PROMPT}, "'reply': must be the reply's text"),
        (
            {"task": {"goal": "g"}, "prompt": PROMPT, "reply": "x", "finished": 1},
            "'finished': must be false",
        ),
    ],
)
def test_a_line_that_cannot_be_used_is_named(
    offline: Offline, line: dict[str, Any], reason: str
) -> None:
    write(offline.file, line)
    told = offline.mr()
    assert told.code == 2 and "replies.jsonl: line 1: " in told.err and reason in told.err
    assert offline.calls == 0 and not list(offline.folder.glob("mr.jsonl*"))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--policy", "http://127.0.0.1:1/v1"], "--policy-model is missing"),
        (["--policy", "http://127.0.0.1:1/v1", "--policy-model", "m"], "gave no answer"),
        (["--policy", "nowhere"], "--policy nowhere: not a Hugging Face model folder"),
        (["--user", "llm"], "name --user-url and --user-model"),
        (["--user-url", "http://127.0.0.1:1/v1", "--user-model", "m"], "has no endpoint"),
        (
            ["--user", "llm", "--user-url", "http://127.0.0.1:1/v1", "--user-model", "m"],
            "1/v1 gave",
        ),
        (["--policy-key-env", "NO_SUCH_KEY"], "NO_SUCH_KEY is not set"),
        (["--weights", "accuracy=1"], "replies.jsonl: line 1: metric accuracy"),
        (["--weights", "interactivity=1"], "name one with --judge-url"),
        (["--K", "0"], "--K"),
    ],
)
def test_a_request_that_cannot_work_is_told_before_anything_is_played(
    offline: Offline, words: list[str], reason: str
) -> None:
    told = offline.mr(*PLANNING, *words)
    assert told.code == 2 and reason in told.err and "Traceback" not in told.err, told.err
    assert offline.calls == 0 and not list(offline.folder.glob("mr.jsonl*"))


class Silent:
    """A user that fails, and notes with which seeds."""

    def __init__(self) -> None:
        self.seeds: list[int] = []

    async def reply(self, task: Task, conversation: Conversation, seed: int) -> UserTurn:
        self.seeds.append(seed)
        raise SimulatorFailed("no voice", {"calls": 1.0})


class Mute:
    async def reply(self, conversation: Conversation, max_tokens: int, seed: int) -> PolicyTurn:
        raise AssertionError("there is nothing to answer")


def settings(**changes: Any) -> Settings:
    return mr_settings("agenda", {"metrics": {"goal_elicited": {"weight": 1.0}}, **changes})


def test_a_failed_user_is_played_again_as_the_same_person_and_all_is_paid_for(trip: Task) -> None:
    user = Silent()
    player = FuturePlayer(Mute(), user, settings(max_resamples=2), len, asyncio.Semaphore(1))
    opening = Conversation.from_dicts(PROMPT).add("assistant", "Hm?")
    record = asyncio.run(player.play(trip, opening, FutureRecord(0, 7, 8)))
    assert record.failure == "user: no voice" and record.resamples == 2
    assert record.usage == {"calls": 3.0} and record.reward is None
    assert len(set(user.seeds)) == 3 and len({seed % 2**48 for seed in user.seeds}) == 1


def test_settings_are_those_of_training_where_nothing_else_is_said() -> None:
    known = settings(window=3)
    assert known.window == 3 and known.user == "agenda" and known.floor_margin == 0.1
    llm = mr_settings(
        "llm",
        {"metrics": known.metrics, "user_endpoint": {"model": "m", "base_url": "http://u/v1"}},
    )
    assert llm.interaction[0]["config"]["endpoint"]["model"] == "m" and llm.user_timeout_s == 900


def test_a_folders_model_plays_on(
    smollm2: Path, tmp_path: Path, terminal: Terminal, trip: Task
) -> None:
    file = write(tmp_path / "r.jsonl", given(trip, "Which city do you want to go to?"))
    words = ["--K", "1", "--window", "1", "--max-future-tokens", "8", "--temperature", "0"]
    told = terminal.collabllm(
        "mr", file, "--policy", str(smollm2), "--task", "planning", "--output", "o.jsonl", *words
    )
    assert told.code == 0, told.err
    (record,) = records(tmp_path / "o.jsonl")
    assert record.n_valid == 1 and 0 < record.futures[0].policy_tokens <= 8
    long = [*words[:4], "--max-future-tokens", "99999", "--output", "x.jsonl"]
    told = terminal.collabllm("mr", file, "--policy", str(smollm2), "--task", "planning", *long)
    assert told.code == 2 and "lower --window" in told.err
