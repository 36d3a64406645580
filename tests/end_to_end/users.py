"""A user for end-to-end tests: written for verl 0.7, fails now and then, and at last always."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from interaction.contract import BaseInteraction
from interaction.seeds import derive_seed


class OldInteraction(BaseInteraction):
    """As people wrote them for verl 0.7.

    Fails for a share `fails` of what it is told, and for all once the file `down` is there.
    """

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
        down = Path(self.config["down"]).exists()
        if down or derive_seed(messages[-1]["content"]) % 100 < 100 * self.config.get("fails", 0):
            raise ConnectionError("the endpoint is down")
        return False, "Please go on.", 0.0, {}

    async def finalize_interaction(self, instance_id: str | None = None, **kwargs: Any) -> None:
        """Forget it."""
        del self._instances[instance_id or ""]
