"""Conversations that lie in a file: of anybody's making, or those of a run.

    {"messages": [...], "task": {"ground_truth": "42"}}      a conversation
    {"prompt": [...], "reply": "...", "futures": [...]}      a line of a run's conversations/

Promises: a line that cannot be used is a fault that names file, line, key and remedy; a
conversation that can be read and not scored is kept, for its reason to be told. Knows nothing
of metrics.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from data.parquet import read_tasks
from interaction.conversation import Conversation, StopReason
from interaction.seeds import derive_seed
from interaction.task import Task
from recipe.collabllm.given_task import read_task
from recipe.collabllm.json_lines import FileFault, JsonLine, read_json_lines
from recipe.collabllm.record import FutureRecord, ReplyRecord

_RESCORED = "metric: "  # how a failure begins that was the scoring's and not the future's

FindTask = Callable[[str], Task | None]


@dataclass(frozen=True)
class StoredConversation:
    """One conversation to be scored.

    Attributes:
        line: Where it stands, from 1.
        k: Which future of a run's reply it is; None for a conversation of its own, or a reply
            without futures.
        task: What it was about.
        conversation: All of it.
        given: Leading messages that were there before the policy spoke.
        seed: Of whatever is random about scoring it.
        fault: Why the policy's reply is unusable and gets the floor; None if it is not.
        failure: Why it cannot be scored, as far as is known before; None if nothing is.
    """

    line: int
    k: int | None
    task: Task
    conversation: Conversation
    given: int
    seed: int
    fault: str | None = None
    failure: str | None = None


def read_conversations(path: Path, data: Path | None, family: str) -> list[StoredConversation]:
    """Return the conversations of a file.

    Args:
        path: JSON lines.
        data: Where the tasks of a run's records are: the run's parquet file, or JSON lines with
            tasks in them.
        family: Of tasks that name none.

    Raises:
        FileFault, DataError: If a line or the data cannot be used.
    """
    lines = read_json_lines(path)
    tasks = _tasks(data, family) if data else {}
    found: list[StoredConversation] = []
    for line in lines:
        if "futures" in line.value:
            found += _record(line, tasks, data)
        else:
            found.append(_conversation(line, family))
    return found


def _conversation(line: JsonLine, family: str) -> StoredConversation:
    if "messages" not in line.value:
        reason = "is missing; a line has messages, or is one of a run's conversations"
        raise line.fault("messages", reason)
    conversation = line.conversation("messages")
    task = read_task(line, family=family, task_id=f"line {line.number}")
    return StoredConversation(
        line=line.number,
        k=None,
        task=task,
        conversation=replace(conversation, stop=_stop(line)),
        given=_given(line, conversation),
        seed=derive_seed(task.task_id),
    )


def _given(line: JsonLine, conversation: Conversation) -> int:
    """Return how many messages were there before: all before the first assistant turn."""
    roles = [message.role for message in conversation.messages]
    first = roles.index("assistant") if "assistant" in roles else len(roles)
    given = line.value.get("given", first)
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= len(roles):
        reason = f"must be a whole number of messages, from 0 to {len(roles)}, or left out"
        raise line.fault("given", reason)
    return given


def _stop(line: JsonLine) -> StopReason | None:
    stop = line.value.get("stop")
    try:
        return None if stop is None else StopReason(stop)
    except ValueError as error:
        known = ", ".join(reason.value for reason in StopReason)
        raise line.fault("stop", f"must be one of {known}, or left out") from error


def _record(line: JsonLine, tasks: dict[str, Task], data: Path | None) -> list[StoredConversation]:
    record = read_record(line)
    task = tasks.get(record.task_id)
    if task is None:
        where = f"is not in {data}" if data else "is a run's record, which holds no task"
        reason = f"{record.task_id!r} {where}: name the run's data file with --data FILE.parquet"
        raise line.fault("task_id", reason)
    reply = StoredConversation(
        line=line.number,
        k=None,
        task=task,
        conversation=record.conversation(FutureRecord(0, 0, 0)),
        given=record.given,
        seed=record.seed,
        fault=record.fault,
    )
    if record.fault:
        return [reply]
    if not record.futures:
        return [replace(reply, failure="the reply has no futures")]
    return [_future(reply, record, future) for future in record.futures]


def _future(
    reply: StoredConversation, record: ReplyRecord, future: FutureRecord
) -> StoredConversation:
    failed = future.failure is not None and not future.failure.startswith(_RESCORED)
    return replace(
        reply,
        k=future.k,
        conversation=record.conversation(future),
        seed=future.user_seed,
        failure=future.failure if failed else None,
    )


def read_record(line: JsonLine) -> ReplyRecord:
    """Return a line as a record, its conversations readable.

    Raises:
        FileFault: If it is none.
    """
    try:
        record = ReplyRecord.from_json(json.dumps(line.value))
        for future in [FutureRecord(0, 0, 0), *record.futures]:
            record.conversation(future)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise line.fault("futures", f"not a record of docs/run_folder.md: {error}") from error
    return record


def _tasks(data: Path, family: str) -> dict[str, Task]:
    if data.suffix == ".parquet":
        try:
            return {task.task_id: task for task in read_tasks(data)}
        except (KeyError, TypeError) as error:
            raise FileFault(f"{data}: holds no tasks: {error}") from error
    tasks = [read_task(line, family=family) for line in read_json_lines(data)]
    return {task.task_id: task for task in tasks}
