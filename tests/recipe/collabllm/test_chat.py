"""Chats with a model: a person's commands, and a simulated user's conversation, scored."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from rich.console import Console
from transformers import AutoTokenizer

from interaction.conversation import Conversation
from interaction.guarded_user import GuardedUser
from interaction.policy import PolicyTurn
from interaction.task import Task
from interaction.user import SimulatorFailed, UserTurn
from recipe.collabllm.chat import chat_with_user
from recipe.collabllm.chat_model import find_model
from recipe.collabllm.chat_person import chat_with_person
from recipe.collabllm.chat_user import Row, Stage, play
from recipe.collabllm.record import Outcome, ReplyRecord
from recipe.collabllm.scoring import ReplyScorer
from recipe.collabllm.settings import Settings, read_settings
from serving.chat_tokens import ChatTokens
from tests.conftest import PROJECT
from tests.recipe.collabllm.conftest import raw_settings

OPENING = Conversation().add("system", "Ask.").add("user", "I want to go on a trip.")


class Echo:
    """Says what it was told, and how many messages it saw."""

    async def reply(self, conversation: Conversation, max_tokens: int, seed: int) -> PolicyTurn:
        assert conversation.last
        text = f"{len(conversation.messages)} [bold]{conversation.last.content}[/bold]\x1b[31m"
        if "too long" in text:
            raise ValueError("a prompt of 9 tokens leaves no room")
        return PolicyTurn(text, (1, 2), finished="cut" not in text)


class Mute:
    """A user that fails."""

    async def reply(self, task: Task, conversation: Conversation, seed: int) -> UserTurn:
        raise SimulatorFailed("no voice")


def typed(*lines: str, end: type[BaseException] = EOFError) -> Callable[[str], str]:
    """Return an `input` that gives these lines, then ends."""
    left = iter(lines)

    def read(_: str) -> str:
        for line in left:
            return line
        raise end

    return read


def talk(
    *lines: str, save: Path | None = None, end: type[BaseException] = EOFError, system: str = "Ask."
) -> list[str]:
    shown: list[str] = []
    chat_with_person(Echo(), system, typed(*lines, end=end), shown.append, save)
    return shown


def read(path: Path) -> list[ReplyRecord]:
    return [ReplyRecord.from_json(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("end", [EOFError, KeyboardInterrupt])
def test_a_chat_remembers_resets_and_ends_cleanly(end: type[BaseException]) -> None:
    shown = talk("one", "", "   ", "two", "/reset", "three", end=end)
    replies = [text for text in shown if text.startswith("model> ")]
    assert [text[7:9] for text in replies] == ["2 ", "4 ", "2 "]


def test_quit_ends_before_what_follows() -> None:
    assert not any("model>" in text for text in talk("/quit", "one"))


def test_help_and_unknown_commands_tell_the_commands() -> None:
    assert "/reset" in talk("/help")[1]
    assert "no command /sing" in talk("/sing a song")[1]


def test_what_goes_wrong_is_told_and_the_chat_goes_on() -> None:
    shown = talk("too long", "cut", system="")
    assert "/reset begins" in shown[1]
    assert shown[2].startswith("model> 1 ") and shown[3] == "(cut after 2 tokens)"


def test_conversations_are_kept_as_records(tmp_path: Path) -> None:
    talk("one", "two", "/reset", "three", save=tmp_path / "chat.jsonl")
    first, second = read(tmp_path / "chat.jsonl")
    (future,) = first.futures
    said = [message.content[:5] for message in first.conversation(future).messages]
    assert said == ["Ask.", "one", "2 [bo", "two", "4 [bo"]
    assert future.user_turns == 1 and future.reward is None
    assert second.reply.startswith("2 ") and second.uid != first.uid


def test_save_refuses_to_overwrite(tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    shown = talk(f"/save {file}", "one", "/save", f"/save {file}", f"/save {file}")
    assert shown[1] == "nothing was said yet" and "name of a new file" in shown[3]
    assert shown[4] == f"saved: {file}" and "not overwritten" in shown[5]
    assert len(read(file)) == 1
    with pytest.raises(ValueError, match="not overwritten"):
        talk("one", save=file)
    with pytest.raises(ValueError, match="there is no folder"):
        talk("one", save=tmp_path / "none" / "chat.jsonl")


def row(trip: Task) -> Row:
    return Row(0, "planning", "opening", trip, OPENING)


def played(user: Settings | Mute, trip: Task) -> tuple[ReplyRecord, str]:
    settings = read_settings(raw_settings())
    guarded = GuardedUser(Mute() if isinstance(user, Mute) else user.make_user(), len, 999, 5, 1)
    shown = StringIO()
    stage = Stage(Console(file=shown, force_terminal=False, width=200))
    stage.begin(row(trip))
    record = asyncio.run(play(Echo(), settings, guarded, row(trip), 1, stage))
    record = asyncio.run(ReplyScorer(settings, len).score(trip, record))
    stage.end(row(trip), record)
    return record, shown.getvalue()


def test_markup_and_terminal_commands_of_a_model_are_not_obeyed(
    settings: Settings, trip: Task
) -> None:
    record, shown = played(settings, trip)
    assert "\x1b" in record.reply
    assert "[bold]I want to go on a trip.[/bold][31m" in shown and "\x1b" not in shown
    assert trip.goal.summary in shown and "goal_elicited" in shown


def test_a_user_that_fails_leaves_no_score(trip: Task) -> None:
    record, shown = played(Mute(), trip)
    assert record.outcome is Outcome.LEFT_OUT and "no voice" in shown


def test_a_bad_model_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"--model .*not a Hugging Face model folder"):
        find_model(tmp_path / "nothing", tmp_path, print)


def test_without_a_model_the_newest_run_is_taken(smollm2: Path, tmp_path: Path) -> None:
    for age, run in enumerate(("new", "old")):
        (tmp_path / run).mkdir()
        (tmp_path / run / "model").symlink_to(smollm2)
        assert find_model(tmp_path / run, tmp_path, print) == tmp_path / run / "model"
        (tmp_path / run / "model").unlink()
        (tmp_path / run / "model").mkdir()
        for file in smollm2.iterdir():
            (tmp_path / run / "model" / file.name).symlink_to(file)
        os.utime(tmp_path / run / "model", (1000 - age, 1000 - age))
    assert find_model(None, tmp_path, print) == tmp_path / "new" / "model"


def test_a_simulated_chat_is_kept_and_scores_the_same_again(smollm2: Path, tmp_path: Path) -> None:
    words = [
        f"collabllm.outputs={tmp_path}",
        "backend=cpu",
        "data.train_rows=8",
        "data.validation_rows=8",
        "data.system_prompt='Answer with one short question.'",
        "collabllm.max_reply_tokens=96",
        "actor_rollout_ref.rollout.temperature=0",
    ]
    file, shown = tmp_path / "chat.jsonl", StringIO()
    console = Console(file=shown, width=200)
    (record,) = chat_with_user(words, smollm2, 1, 1, file, print, console=console)
    assert read(file) == [record]
    assert record.outcome is Outcome.SCORED and "R*" in shown.getvalue()
    (validation,) = tmp_path.glob("data/*/validation.parquet")
    rows = [Row.read(row) for row in pq.read_table(validation).to_pylist()]
    task = next(row.task for row in rows if row.task.task_id == record.task_id)
    group = yaml.safe_load((PROJECT / "recipe/collabllm/config/metrics/planning.yaml").read_text())
    settings = read_settings(raw_settings(metrics=group))
    tokens = ChatTokens(AutoTokenizer.from_pretrained(smollm2))
    again = asyncio.run(ReplyScorer(settings, tokens.count).score(task, read(file)[0]))
    assert again.mr == record.mr and again.futures[0].reward == record.futures[0].reward
