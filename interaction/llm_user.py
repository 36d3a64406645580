"""A simulated user played by a language model.

    interaction:
      - name: person
        class_name: interaction.llm_user.LLMUser
        config: {endpoint: {...}, personas: [plain, terse], max_tokens: 512}

Left to itself a model drifts back into the assistant it was trained to be. So each turn is read
by the rules of interaction/drift.py, and one that drifts is asked for once more, with the reason.

Promises: stateless; a turn is what the person says and nothing of what the model thought; a turn
that stays unusable is `SimulatorFailed`. Knows nothing of HTTP, JSON repair or scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, Field, field_validator

from interaction.chat import ChatFailed, ChatModel, ChatUnreadable
from interaction.conversation import Conversation, Message
from interaction.drift import find_drift
from interaction.persona import Persona, all_personas, choose_personas, sample_persona
from interaction.seeds import derive_seed
from interaction.spoken import as_heard, without_end_sign, without_thinking
from interaction.task import Task
from interaction.user import SimulatorFailed, UserTurn, add_usage
from interaction.user_prompt import again_messages, turn_messages

LEAVES = "(ends the chat)"
_DESCRIPTION = "A person asks an AI assistant for help and knows things that it has to ask for."
_COPIED = 4  # words of a thought that are no coincidence in a message
_ENGLISH = tuple(persona for persona in all_personas() if persona.language == "en")
_FORM = "Your answer was not the JSON object that was asked for."


class Answer(BaseModel):
    """The form of a user's turn.

    Attributes:
        so_far: What the assistant has by now; written first, so that `done` follows from it.
        thought: What the person makes of the last turn; never shown.
        message: What they say.
        done: They leave after it.
    """

    so_far: str = Field(default="", description="what the assistant knows and has given by now")
    thought: str = Field(default="", description="what this person makes of the last turn")
    message: str = Field(description="what this person writes")
    done: bool = Field(default=False, description="whether this person leaves after the message")

    @field_validator("so_far", "thought", "message", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        """A person may well say 5; null is nothing said."""
        if value is None:
            return ""
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return str(value) if number else value


@dataclass(frozen=True)
class _Moment:
    """Who is to speak, about what, and where in the conversation."""

    task: Task
    heard: Conversation
    persona: Persona
    seed: int


@dataclass(frozen=True)
class _Try:
    """One call: what the person said, what is wrong with it (name and reason), what it cost."""

    text: str
    done: bool
    written: str
    faults: tuple[tuple[str, str], ...]
    usage: Mapping[str, float]


class LLMUser:
    """A user played by a language model.

    Args:
        chat: The model.
        personas: Names of the personas it plays, by seed; None for all that speak English,
            which is what metrics by rule can read.
        max_tokens: Budget of one answer, the thought included; None for the endpoint's own.
        task_description: What the conversations are about, in a sentence or two.

    Raises:
        ValueError: If a persona does not exist or the budget is not positive.
    """

    def __init__(
        self,
        chat: ChatModel,
        personas: Sequence[str] | None = None,
        max_tokens: int | None = 512,
        task_description: str = _DESCRIPTION,
    ) -> None:
        if max_tokens is not None and max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, got {max_tokens}")
        self._chat = chat
        self._personas = choose_personas(personas, languages=None) if personas else _ENGLISH
        self._max_tokens = max_tokens
        self._description = task_description

    def language(self, seed: int) -> str:
        """Return what the person of a seed speaks, as an ISO 639-1 code."""
        return sample_persona(seed, self._personas).language

    def check(self, task: Task) -> None:
        """Look, before a run, for what this user needs of a task.

        Raises:
            ValueError: If the goal is empty.
        """
        if not task.goal.summary.strip():
            raise ValueError(_empty_goal(task))

    async def open(self, task: Task, seed: int) -> UserTurn:
        """Take the first turn: the request as this person would put it.

        Raises:
            SimulatorFailed: If there is no usable turn.
        """
        turn = await self._turn(task, Conversation(), seed)
        return replace(turn, done=False)  # nobody leaves before an answer

    async def reply(self, task: Task, conversation: Conversation, seed: int) -> UserTurn:
        """Answer the assistant's last turn.

        Raises:
            SimulatorFailed: If the conversation does not end with an assistant turn, the goal
                is empty, the model fails, or its second try drifts too.
        """
        last = conversation.last
        if last is None or last.role != "assistant":
            raise SimulatorFailed("the user can only answer an assistant turn")
        return await self._turn(task, as_heard(conversation), seed)

    async def _turn(self, task: Task, heard: Conversation, seed: int) -> UserTurn:
        if not task.goal.summary.strip():
            raise SimulatorFailed(_empty_goal(task))
        persona = sample_persona(seed, self._personas)
        moment = _Moment(task, heard, persona, seed)
        messages = turn_messages(task, persona, self._description, heard)
        first = await self._try(moment, messages, 0)
        if not first.faults:
            return UserTurn(first.text, first.done, first.usage)
        messages = again_messages(messages, first.written, [reason for _, reason in first.faults])
        second = await self._try(moment, messages, 1)
        if second.faults:
            wrong = "; ".join(f"{name}: {reason}" for name, reason in second.faults)
            reason = f"the user's turn went wrong twice: {wrong}"
            named = {name: 1.0 for name, _ in second.faults}
            raise SimulatorFailed(reason, add_usage(_summed(first, second), named))
        return UserTurn(second.text, second.done, _summed(first, second))

    async def _try(self, moment: _Moment, messages: Sequence[Message], number: int) -> _Try:
        """Ask once; what is wrong with the answer is in what is returned."""
        seed = derive_seed(moment.seed, "turn", len(moment.heard.messages), number)
        try:
            answer = await self._chat.structured(
                messages, Answer, seed=seed, max_tokens=self._max_tokens
            )
        except ChatUnreadable as error:
            return _read_prose(moment, error.text)
        except ChatFailed as error:
            raise SimulatorFailed(f"the user's model failed: {error}") from error
        said = answer.value
        text = _without(said.thought, without_thinking(said.message))
        return _read(moment, text, said.done, said.model_dump_json(), answer.usage)


def _empty_goal(task: Task) -> str:
    return (
        f"task {task.task_id!r}: its goal is empty, so there is nobody to play; put what the user "
        "wants into goal.summary, or leave the row out"
    )


def _without(thought: str, text: str) -> str:
    """Return a text without the thought, should the model have copied it there."""
    return text.replace(thought.strip(), "") if len(thought.split()) >= _COPIED else text


def _read_prose(moment: _Moment, written: str) -> _Try:
    """Take plain prose as the message; anything else was meant to be the form and is not."""
    usage = {"calls": 1.0}  # what an unreadable answer cost besides is not known
    prose = without_thinking(written)
    if not prose or "{" in prose or "}" in prose:
        return _Try("", False, written, (("unreadable", _FORM),), usage)
    return _read(moment, prose, False, prose, usage)


def _read(moment: _Moment, text: str, done: bool, written: str, usage: Mapping[str, float]) -> _Try:
    said, ended = without_end_sign(text)
    done = done or ended
    if done and not said and moment.heard.messages:  # people do leave without a word
        return _Try(LEAVES, True, written, (), usage)
    found = find_drift(moment.task, moment.heard, said, moment.persona.language)
    faults = tuple((f"drift_{finding.drift.value}", finding.reason) for finding in found)
    return _Try(said, done, written, faults, usage)


def _summed(first: _Try, second: _Try) -> dict[str, float]:
    """Return what both calls cost, and what was wrong with the first."""
    return {
        **add_usage(first.usage, second.usage),
        "reasked": 1.0,
        **{name: 1.0 for name, _ in first.faults},
    }
