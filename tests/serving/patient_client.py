"""A chat client that notes its waits instead of waiting, and what tests ask it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from interaction.conversation import Message
from serving.chat_client import ChatClient
from serving.chat_endpoint import endpoint_from
from tests.serving import fault_server as fault

QUESTION = [Message("system", "Be brief."), Message("user", "Hi")]


class Turn(BaseModel):
    message: str
    done: bool = False
    mood: float = Field(default=0.5, ge=0, le=1)


class Patient:
    """A client that notes its waits instead of waiting."""

    def __init__(self, server: fault.Server, limits: Path, role: str = "user", **change: Any):
        self.waits: list[float] = []
        config = {"model": "m", "base_url": server.url, "limits_dir": limits, "timeout_s": 10}
        self.client = ChatClient(endpoint_from(config | change, role), role, sleep=self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def complete(self, **change: Any) -> Any:
        return asyncio.run(self.client.complete(QUESTION, **{"seed": 1, **change}))

    def structured(self) -> Any:
        return asyncio.run(self.client.structured(QUESTION, Turn, seed=1))
