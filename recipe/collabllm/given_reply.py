"""Replies whose multiturn-aware reward is asked for, as lines of a file.

    {"task": {...}, "prompt": [messages], "reply": "Which city?"}

Promises: lines of one task and prompt are a group, and what its replies meet is derived from
the group alone; a fault names file, line, key and remedy. Knows nothing of how futures are played.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from interaction.conversation import Conversation
from interaction.policy import PolicyTurn
from interaction.seeds import derive_seed
from interaction.task import Task
from recipe.collabllm.given_task import read_task
from recipe.collabllm.json_lines import JsonLine, read_json_lines
from recipe.collabllm.record import FutureRecord, ReplyRecord, with_reply


@dataclass(frozen=True)
class GivenReply:
    """A reply to a prompt.

    Attributes:
        line: Where it stands, from 1.
        uid: Names the group: its task and prompt.
        session: Which reply of its group this is, from 0, in the order of the file.
        task: What it is about.
        prompt: Ends with the user's turn.
        turn: The reply itself.
    """

    line: int
    uid: str
    session: int
    task: Task
    prompt: Conversation
    turn: PolicyTurn

    @property
    def conversation(self) -> Conversation:
        """The prompt and the reply."""
        return self.prompt.add("assistant", self.turn.text)

    def record(self, tokens: int) -> ReplyRecord:
        """Return the reply's record, without futures.

        Args:
            tokens: Its length.
        """
        record = with_reply(
            self.turn,
            uid=self.uid,
            session=self.session,
            step=0,
            split="given",
            task_id=self.task.task_id,
            family=self.task.family,
            data_source=self.task.family,
            context="given",
            seed=0,  # nobody knows what it was sampled with
            prompt=self.prompt.to_dicts(),
        )
        return replace(record, reply_tokens=tokens)

    def futures(self, seed: int, K: int) -> list[FutureRecord]:
        """Return K futures to be played; those of one k meet the same user in all the group.

        Args:
            seed: Of all that is played.
        """
        return [
            FutureRecord(
                k=k,
                user_seed=derive_seed(seed, self.task.task_id, self.uid, "user", k),
                policy_seed=derive_seed(
                    seed, self.task.task_id, self.uid, "future", self.session, k
                ),
            )
            for k in range(K)
        ]


def read_replies(path: Path, family: str) -> list[GivenReply]:
    """Return the replies of a file.

    Args:
        family: Of tasks that name none.

    Raises:
        FileFault: If a line cannot be used.
    """
    sessions: Counter[str] = Counter()
    replies = []
    for line in read_json_lines(path):
        task, prompt = _task(line, family), _prompt(line)
        uid = f"{derive_seed(task.to_json(), json.dumps(prompt.to_dicts())):016x}"
        replies.append(GivenReply(line.number, uid, sessions[uid], task, prompt, _turn(line)))
        sessions[uid] += 1
    return replies


def _task(line: JsonLine, family: str) -> Task:
    if "task" not in line.value:
        raise line.fault("task", "is missing: the simulated user needs its goal")
    task = read_task(line, family=family)
    if not task.goal.summary.strip():
        raise line.fault("task.goal", "has no summary: say what only the user knows and wants")
    return task


def _prompt(line: JsonLine) -> Conversation:
    prompt = line.conversation("prompt")
    if prompt.last is None or prompt.last.role != "user":
        raise line.fault("prompt", "must end with a user message, which the reply answers")
    return prompt


def _turn(line: JsonLine) -> PolicyTurn:
    reply, finished = line.value.get("reply"), line.value.get("finished", True)
    if not isinstance(reply, str):
        raise line.fault("reply", "must be the reply's text")
    if not isinstance(finished, bool):
        raise line.fault(
            "finished", "must be false for a reply that was cut by its budget, or true"
        )
    return PolicyTurn(reply, finished=finished)
