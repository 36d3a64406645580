"""A person at a terminal talks to a policy.

Promises: ends cleanly on /quit, Ctrl-D and Ctrl-C; a mistake is told and the chat goes on; a
conversation is kept whole or not at all. Knows nothing of models, terminals or scores.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from interaction.conversation import Conversation, StopReason
from interaction.policy import Policy, PolicyTurn
from interaction.seeds import derive_seed
from recipe.collabllm.chat_file import ConversationFile
from recipe.collabllm.record import FutureRecord, ReplyRecord, with_reply

HELP = """\
/reset      begin a new conversation
/save FILE  write this conversation to a new file
/quit       end (Ctrl-D and Ctrl-C too)
/help       show this"""


def chat_with_person(
    policy: Policy,
    system_prompt: str,
    read: Callable[[str], str],
    write: Callable[[str], None],
    save: Path | None = None,
    *,
    max_tokens: int = 256,
    seed: int = 1,
) -> None:
    """Let a person and a policy talk until the person ends it.

    Args:
        system_prompt: The policy's system message; "" for none.
        read: Asks for a line, as `input` does: EOFError and KeyboardInterrupt end the chat.
        write: Shows a text.
        save: A new file for all conversations.
        max_tokens: Budget of a reply.
        seed: Same seed and same words, same replies.

    Raises:
        ValueError: If `save` cannot be written to.
    """
    file = ConversationFile(save) if save else None
    chat = _Chat(policy, system_prompt, write, file, max_tokens, seed)
    write("/help shows the commands")
    try:
        while chat.take(read("you> ").strip()):
            pass
    except (EOFError, KeyboardInterrupt):
        write("")
    chat.reset()


@dataclass
class _Chat:
    """The conversation at hand."""

    policy: Policy
    system_prompt: str
    write: Callable[[str], None]
    file: ConversationFile | None
    max_tokens: int
    seed: int
    number: int = 0
    turns: list[PolicyTurn] = field(default_factory=list)
    conversation: Conversation = field(init=False)

    def __post_init__(self) -> None:
        self.conversation = self._opening()

    def take(self, line: str) -> bool:
        """Carry out a line; return whether the chat goes on."""
        command, _, rest = line.partition(" ")
        if command == "/quit":
            return False
        if command == "/reset":
            self.reset()
            self.write("a new conversation")
        elif command == "/save":
            self._save(rest.strip())
        elif line.startswith("/"):
            self.write(HELP if command == "/help" else f"no command {command}; there are:\n{HELP}")
        elif line:
            self._say(line)
        return True

    def reset(self) -> None:
        """Keep the conversation if there is one and a file, and begin another."""
        record = self._record()
        if record and self.file:
            self.file.add(record)
        self.number += record is not None
        self.turns, self.conversation = [], self._opening()

    def _opening(self) -> Conversation:
        start = Conversation()
        return start.add("system", self.system_prompt) if self.system_prompt else start

    def _say(self, line: str) -> None:
        said = self.conversation.add("user", line)
        try:
            turn = asyncio.run(self.policy.reply(said, self.max_tokens, self._turn_seed()))
        except ValueError as error:
            self.write(f"({error}; /reset begins a new conversation)")
            return
        self.turns.append(turn)
        self.conversation = said.add("assistant", turn.text)
        self.write(f"model> {turn.text}")
        if turn.fault is StopReason.LENGTH:
            self.write(f"(cut after {len(turn.token_ids)} tokens)")
        elif turn.fault:
            self.write("(empty or malformed)")

    def _turn_seed(self) -> int:
        return derive_seed(self.seed, "chat", self.number, len(self.turns))

    def _save(self, name: str) -> None:
        record = self._record()
        if not name or record is None:
            self.write("nothing was said yet" if name else "/save needs the name of a new file")
            return
        try:
            ConversationFile(Path(name)).add(record)
        except (OSError, ValueError) as error:
            self.write(str(error))
        else:
            self.write(f"saved: {name}")

    def _record(self) -> ReplyRecord | None:
        """Return the conversation as a reply and one future that a person played."""
        if not self.turns:
            return None
        messages = self.conversation.to_dicts()
        given = 1 + bool(self.system_prompt)
        record = with_reply(
            self.turns[0],
            uid=f"chat-{self.number}",
            session=0,
            step=0,
            split="chat",
            task_id="",
            family="person",
            data_source="person",
            context="opening",
            seed=derive_seed(self.seed, "chat", self.number, 0),
            prompt=messages[:given],
        )
        future = FutureRecord(
            k=0,
            user_seed=0,
            policy_seed=self.seed,
            messages=messages[given + 1 :],
            user_turns=len(self.turns) - 1,
            policy_tokens=sum(len(turn.token_ids) for turn in self.turns[1:]),
        )
        return replace(record, futures=[future.failed("a person's conversation is not scored")])
