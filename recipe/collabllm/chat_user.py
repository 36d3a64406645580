"""One conversation of a simulated user with a policy, watched turn by turn.

Promises: played by the function that plays training's futures, recorded as a reply and its one
future; what is said is shown as plain text. Knows nothing of models, files or scores' making.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console
from rich.text import Text

from interaction.conversation import Conversation
from interaction.future import sample_future
from interaction.guarded_user import GuardedUser
from interaction.policy import Policy, PolicyTurn
from interaction.seeds import derive_seed
from interaction.task import Task
from interaction.user import SimulatedUser, SimulatorFailed, UserTurn
from recipe.collabllm.record import FutureRecord, ReplyRecord, with_reply
from recipe.collabllm.settings import Settings

_STYLES = {"system": "dim", "user": "cyan", "assistant": "green"}


@dataclass(frozen=True)
class Row:
    """A held-out problem and what was said before the policy replies."""

    index: int
    data_source: str
    context: str
    task: Task
    conversation: Conversation

    @classmethod
    def read(cls, row: dict[str, Any]) -> Row:
        """Read a row of a validation file."""
        extra = row["extra_info"]
        return cls(
            index=int(extra["index"]),
            data_source=str(row["data_source"]),
            context=str(extra["context"]),
            task=Task.from_json(extra["task"]),
            conversation=Conversation.from_dicts(row["prompt"]),
        )


@dataclass(frozen=True)
class Stage:
    """Where a conversation is shown."""

    console: Console

    def begin(self, row: Row) -> None:
        """Show what was said before."""
        self.console.rule(Text(plain(row.task.task_id)))
        for message in row.conversation.messages:
            self.say(message.role, message.content)

    def say(self, role: str, text: str) -> None:
        """Show a turn."""
        self.console.print(Text(f"{role}> ", style="bold").append(plain(text), _STYLES[role]))

    def end(self, row: Row, record: ReplyRecord) -> None:
        """Show what the user wanted, how it ended and what it was worth."""
        for name, value in _verdict(row, record):
            self.console.print(Text(f"{name:<20}", style="bold").append(plain(value)))


def plain(text: str) -> str:
    """Return a text without the characters that would command a terminal."""
    return "".join(c for c in text if c.isprintable() or c in "\n\t")


async def play(
    policy: Policy, settings: Settings, user: GuardedUser, row: Row, seed: int, stage: Stage
) -> ReplyRecord:
    """Return a reply of the policy and the one future that a simulated user played of it."""

    def own_seed(*parts: str | int) -> int:
        return derive_seed(seed, row.task.task_id, row.index, *parts)

    heard = _HeardPolicy(policy, stage)
    turn = await heard.reply(row.conversation, settings.max_reply_tokens, own_seed("reply"))
    record = with_reply(
        turn,
        uid=f"chat-{row.index}",
        session=0,
        step=0,
        split="validation",
        task_id=row.task.task_id,
        family=row.task.family,
        data_source=row.data_source,
        context=row.context,
        seed=own_seed("reply"),
        prompt=row.conversation.to_dicts(),
    )
    if turn.fault:
        return record
    future = FutureRecord(k=0, user_seed=own_seed("user"), policy_seed=own_seed("future"))
    conversation = row.conversation.add("assistant", turn.text)
    try:
        played = await sample_future(
            heard,
            _HeardUser(user, stage),
            row.task,
            conversation,
            window=settings.window,
            max_tokens=settings.max_future_tokens,
            user_seed=future.user_seed,
            policy_seed=future.policy_seed,
        )
    except SimulatorFailed as error:
        return replace(record, futures=[future.user_failed(error)])
    return replace(record, futures=[future.played(played, len(conversation.messages), 0.0)])


@dataclass(frozen=True)
class _HeardPolicy:
    policy: Policy
    stage: Stage

    async def reply(self, conversation: Conversation, max_tokens: int, seed: int) -> PolicyTurn:
        turn = await self.policy.reply(conversation, max_tokens, seed)
        self.stage.say("assistant", turn.text)
        return turn


@dataclass(frozen=True)
class _HeardUser:
    user: SimulatedUser
    stage: Stage

    async def reply(self, task: Task, conversation: Conversation, seed: int) -> UserTurn:
        turn = await self.user.reply(task, conversation, seed)
        self.stage.say("user", turn.text)
        return turn


def _verdict(row: Row, record: ReplyRecord) -> list[tuple[str, str]]:
    lines = [("goal", row.task.goal.summary)]
    if record.fault:
        return [*lines, ("stop", f"unusable reply: {record.fault}"), ("R* (floor)", f"{record.mr}")]
    future = record.futures[0]
    lines.append(("user turns", str(future.user_turns)))
    if future.failure:
        return [*lines, ("failed", future.failure)]
    lines.append(("stop", str(future.stop)))
    lines += [(name, f"{score:.3f}") for name, score in future.scores.items()]
    return [*lines, ("R*", f"{future.reward:.3f}")]
