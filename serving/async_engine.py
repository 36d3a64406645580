"""The embedded engine behind an asyncio door: one thread steps, many coroutines wait.

Promises: `generate` may be called by any number of tasks at once; a cancelled task takes its
request with it; weights change only between steps; an engine that breaks fails every waiting
request with the reason instead of hanging.
Knows nothing of text or of who asks.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TypeVar

import torch

from serving.cpu_engine import CpuEngine
from serving.generation import EngineCounters, Generation, SamplingParams

T = TypeVar("T")


class EngineClosed(RuntimeError):
    """The engine was closed or broke; the cause says why."""


class AsyncEngine:
    """Runs a `CpuEngine` in a thread of its own.

    Args:
        engine: The engine; nobody else may step it from now on.
    """

    def __init__(self, engine: CpuEngine) -> None:
        self._engine = engine
        self._commands: deque[Callable[[], None]] = deque()
        self._wake = threading.Condition()
        self._closed: BaseException | None = None
        self._results: set[Future[Generation]] = set()
        self._ids = itertools.count()
        self._thread = threading.Thread(target=self._run, name="cpu-engine", daemon=True)
        self._thread.start()

    @property
    def counters(self) -> EngineCounters:
        """The engine's running totals."""
        return self._engine.counters

    async def generate(
        self, prompt: Iterable[int], params: SamplingParams, request_id: str | None = None
    ) -> Generation:
        """Generate from a prompt of token ids.

        Raises:
            ValueError: If the prompt cannot be run (empty, too long, unknown ids).
            EngineClosed: If the engine was closed or broke while this waited.
        """
        name = request_id or f"request-{next(self._ids)}"
        result: Future[Generation] = Future()
        ids = tuple(prompt)

        def add() -> None:
            try:
                self._engine.add(name, ids, params, on_finished)
            except ValueError as error:
                self._results.discard(result)
                result.set_exception(error)

        def on_finished(generation: Generation) -> None:
            self._results.discard(result)
            if not result.cancelled():
                result.set_result(generation)

        self._results.add(result)
        self._submit(add)
        try:
            return await asyncio.wrap_future(result)
        except asyncio.CancelledError:
            self._submit(lambda: void(self._engine.abort(name)))
            raise

    async def abort(self, request_id: str) -> bool:
        """End one request with what it has; return whether it was there."""
        return await self._call(lambda: self._engine.abort(request_id))

    async def abort_all(self) -> int:
        """End every request; return how many there were."""
        return await self._call(self._engine.abort_all)

    async def update_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> None:
        """Change the model's weights between two steps; cached keys and values are dropped."""
        await self._call(lambda: self._engine.update_weights(weights))

    async def clear_prefixes(self) -> None:
        """Forget the keys and values of finished sequences."""
        await self._call(self._engine.clear_prefixes)

    async def release_memory(self) -> None:
        """Give the memory of all keys and values back."""
        await self._call(self._engine.release_memory)

    def close(self) -> None:
        """Stop the thread; waiting requests fail with `EngineClosed`."""
        self._submit(self._stop)
        self._thread.join()

    async def _call(self, function: Callable[[], T]) -> T:
        result: Future[T] = Future()

        def run() -> None:
            try:
                result.set_result(function())
            except Exception as error:  # handed to the caller, whatever it is
                result.set_exception(error)

        self._submit(run)
        return await asyncio.wrap_future(result)

    def _submit(self, command: Callable[[], None]) -> None:
        with self._wake:
            if self._closed is not None:
                raise EngineClosed("the engine is closed") from self._closed
            self._commands.append(command)
            self._wake.notify()

    def _stop(self) -> None:
        raise EngineClosed("the engine was closed")

    def _run(self) -> None:
        try:
            while True:
                self._take_commands()
                if self._engine.has_work:
                    self._engine.step()
        except BaseException as error:
            with self._wake:
                self._closed = error
            for result in list(self._results):
                if not result.done():
                    result.set_exception(EngineClosed(f"the engine stopped: {error!r}"))

    def _take_commands(self) -> None:
        with self._wake:
            while not self._commands and not self._engine.has_work:
                self._wake.wait()
            commands = list(self._commands)
            self._commands.clear()
        for command in commands:
            command()


def void(_: object) -> None:
    """Drop a value where a command must return none."""
