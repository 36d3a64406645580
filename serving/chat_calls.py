"""One call to a chat endpoint, within its limits: the SDK's client and slots of each event loop.

Promises: a call ends within its timeout, with a response or a `CallFault`; no SDK error leaves
here, because it holds the request and may quote the key. Knows nothing of tries or of answers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import openai

from serving.call_limits import CallLimits
from serving.chat_endpoint import ChatEndpoint
from serving.chat_faults import fault_of
from serving.chat_totals import Usage

Send = Callable[[openai.AsyncOpenAI], Awaitable[Any]]


class Connection(NamedTuple):
    """What belongs to one event loop."""

    sdk: openai.AsyncOpenAI
    limits: CallLimits


class ChatCalls:
    """Sends calls.

    Args:
        endpoint: Who is called.
    """

    def __init__(self, endpoint: ChatEndpoint) -> None:
        self._endpoint = endpoint
        self._connections: WeakKeyDictionary[asyncio.AbstractEventLoop, Connection]
        self._connections = WeakKeyDictionary()

    async def send(self, send: Send, usage: Usage) -> Any:
        """Make one call as soon as the limits allow it.

        Args:
            send: Given the SDK's client, makes the call.
            usage: Where the call and its seconds are counted.

        Raises:
            CallFault: If there is no response.
        """
        sdk, limits = self._connection()
        async with limits.hold():
            usage.calls += 1
            began = time.monotonic()
            try:
                # The SDK's own timeout is per read: a server that dribbles would never end.
                return await asyncio.wait_for(send(sdk), self._endpoint.timeout_s)
            except (openai.OpenAIError, asyncio.TimeoutError, ValueError) as error:
                fault = fault_of(error, self._endpoint)
            finally:
                usage.seconds += time.monotonic() - began
        raise fault  # outside of the handler, so that it does not carry the SDK's error along

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        connection = self._connections.pop(asyncio.get_running_loop(), None)
        if connection is not None:
            await connection.sdk.close()

    def _connection(self) -> Connection:
        loop = asyncio.get_running_loop()
        if loop not in self._connections:
            own = self._endpoint
            sdk = openai.AsyncOpenAI(
                api_key=own.api_key(), base_url=own.url, max_retries=0, timeout=own.timeout_s
            )
            limits = CallLimits(own.limits_folder, own.concurrency, own.requests_per_minute)
            self._connections[loop] = Connection(sdk, limits)
        return self._connections[loop]
