"""Users for end-to-end tests: one that fails, and one written for verl 0.7 that fails too."""

from __future__ import annotations

from typing import Any

from interaction.contract import BaseInteraction
from interaction.conversation import Conversation
from interaction.seeds import derive_seed
from interaction.task import Task
from interaction.user import SimulatorFailed, UserTurn


class FlakyUser:
    """Fails for some of what it is told.

    Args:
        fails: Share of turns it fails on.
    """

    def __init__(self, fails: float) -> None:
        self._fails = fails

    async def reply(self, task: Task, conversation: Conversation, seed: int) -> UserTurn:
        """Fail or nod."""
        said = conversation.messages[-1].content
        if derive_seed(seed, said) % 100 < 100 * self._fails:
            raise SimulatorFailed("the endpoint is down")
        return UserTurn("Go on.")


class OldInteraction(BaseInteraction):
    """As people wrote them for verl 0.7; fails for a share `fails` of what it is told."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config)
        self._instances: dict[str, dict[str, Any]] = {}

    async def start_interaction(self, instance_id: str | None = None, **kwargs: Any) -> str:
        """Remember what this conversation is about."""
        assert instance_id is not None
        self._instances[instance_id] = kwargs
        return instance_id

    async def generate_response(
        self, instance_id: str, messages: list[dict[str, Any]], **kwargs: Any
    ) -> tuple[bool, str, float, dict[str, Any]]:
        """Fail, or answer every turn alike."""
        assert instance_id in self._instances
        if derive_seed(messages[-1]["content"]) % 100 < 100 * self.config.get("fails", 0):
            raise ConnectionError("the endpoint is down")
        return False, "Please go on.", 0.0, {}

    async def finalize_interaction(self, instance_id: str | None = None, **kwargs: Any) -> None:
        """Forget it."""
        del self._instances[instance_id or ""]
