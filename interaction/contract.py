"""The interaction contract that verl had up to 0.7: four methods, state by instance id.

verl 0.8.0 deleted it; classes written for it run unchanged apart from the import line
(`from interaction.contract import BaseInteraction`).

Promises: the signatures verl called, and `InteractionUser`, through which such a class is a
simulated user. Knows nothing of any particular interaction.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any
from uuid import uuid4

from interaction.conversation import Conversation
from interaction.task import Task
from interaction.user import SimulatorFailed, UserTurn


class BaseInteraction(ABC):
    """An interaction: keeps what it needs for each conversation under its instance id.

    Args:
        config: The `config` mapping of the YAML entry, its `name` added.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.name: str = config.get("name", "interaction")

    async def start_interaction(self, instance_id: str | None = None, **kwargs: Any) -> str:
        """Begin a conversation; return its instance id (a new one if none is given)."""
        return instance_id or str(uuid4())

    @abstractmethod
    async def generate_response(
        self, instance_id: str, messages: list[dict[str, Any]], **kwargs: Any
    ) -> tuple[bool, str, float, dict[str, Any]]:
        """Answer the last assistant message.

        Returns:
            Whether the conversation ends, the user's text, a score of the turn, and anything
            else worth keeping.
        """

    async def calculate_score(self, instance_id: str | None = None, **kwargs: Any) -> float:
        """Return the score of the conversation so far."""
        return 0.0

    async def finalize_interaction(  # noqa: B027  (there may be nothing to forget)
        self, instance_id: str | None = None, **kwargs: Any
    ) -> None:
        """Forget a conversation."""


class InteractionUser:
    """A simulated user out of an interaction.

    A simulated user is stateless, an interaction is not: each call starts an instance, plays
    the assistant's earlier turns to it in order, asks for the answer to the last one, and
    finalizes it. So futures that branch off one conversation never share state.

    Args:
        interaction: Any object with the four methods.
    """

    def __init__(self, interaction: BaseInteraction) -> None:
        self._interaction = interaction

    async def reply(self, task: Task, conversation: Conversation, seed: int) -> UserTurn:
        """Answer the assistant's last turn.

        Raises:
            SimulatorFailed: If the interaction raises, answers with something else than the
                four values, or with no text.
        """
        try:
            done, text = await self._play(task, conversation, seed)
        except (SimulatorFailed, asyncio.CancelledError):
            raise
        except Exception as error:
            name = type(self._interaction).__name__
            raise SimulatorFailed(f"{name} failed: {type(error).__name__}: {error}") from error
        return UserTurn(text, done)

    async def _play(self, task: Task, conversation: Conversation, seed: int) -> tuple[bool, str]:
        messages = conversation.to_dicts()
        turns = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
        if not turns or turns[-1] != len(messages) - 1:
            raise SimulatorFailed("the user can only answer an assistant turn")
        own = self._interaction
        given = _row_arguments(task, seed)
        begin = _accepted(own.start_interaction, given)
        instance_id = await own.start_interaction(str(uuid4()), **begin)
        try:
            for turn in turns:
                done, text, *_ = await own.generate_response(
                    instance_id, messages[: turn + 1], **_accepted(own.generate_response, given)
                )
            # An interaction that ends may have nothing left to say; the turn says so.
            return bool(done), str(text) if str(text).strip() or not done else "(ends the chat)"
        finally:
            await _finalize(own, instance_id, given)


async def _finalize(
    interaction: BaseInteraction, instance_id: str, given: Mapping[str, Any]
) -> None:
    method = interaction.finalize_interaction
    # verl's own base class declared it without arguments, and its subclasses with one or more.
    first = (instance_id,) if signature(method).parameters else ()
    await method(*first, **_accepted(method, given))


def _accepted(method: Callable[..., Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return those of the keywords that a method takes."""
    parameters = signature(method).parameters
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return given
    return {name: value for name, value in given.items() if name in parameters}


def _row_arguments(task: Task, seed: int) -> Mapping[str, Any]:
    """Return what verl passed to the methods, the row's interaction keywords, and some more."""
    kwargs = dict(task.metadata.get("interaction_kwargs") or {})
    kwargs.setdefault("ground_truth", task.ground_truth)
    kwargs.setdefault("task", task)
    kwargs.setdefault("seed", seed)
    return kwargs
