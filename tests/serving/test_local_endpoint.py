"""A local endpoint: the real llama.cpp server behind the real client, and what it refuses."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from interaction.chat import ChatAnswer, ChatFailed
from interaction.conversation import Conversation, Message
from interaction.persona import sample_persona
from interaction.task import Task
from interaction.user_prompt import turn_messages
from serving.chat_client import ChatClient
from serving.chat_endpoint import ChatEndpoint
from serving.local_endpoint import EndpointError, LocalEndpoint, llama_server, sglang_command
from serving.smollm2 import fetch_gguf
from tests.conftest import PROJECT


class Turn(BaseModel):
    message: str
    done: bool


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def gguf() -> Path:
    return fetch_gguf(PROJECT / "outputs" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf")


@pytest.fixture(scope="module")
def served(gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatEndpoint]:
    local = LocalEndpoint(gguf, "little", port=free_port(), parallel=2, context=1024)
    with llama_server(local):
        yield ChatEndpoint(
            model="little", base_url=local.url, limits_dir=tmp_path_factory.mktemp("limits")
        )


async def until_it_answers(client: ChatClient) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            await client.probe()
            return
        except ChatFailed:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(0.3)


def test_it_answers_by_schema_and_keeps_the_prompt_for_the_next_call(served: ChatEndpoint) -> None:
    messages = [
        Message("system", "You play a person who wants to plan a trip. " * 20),
        Message("user", "Where do you want to go?"),
    ]

    async def twice() -> tuple[ChatAnswer[Turn], ChatAnswer[Turn]]:
        client = ChatClient(served)
        await until_it_answers(client)
        first = await client.structured(messages, Turn, seed=1, max_tokens=400)
        return first, await client.structured(messages, Turn, seed=2, max_tokens=400)

    for answer in (answers := asyncio.run(twice())):
        assert isinstance(answer.value.message, str) and isinstance(answer.value.done, bool)
    again = answers[1].usage
    assert again["cached_tokens"] > 0.8 * again["prompt_tokens"]


def test_a_futures_second_turn_repeats_over_80_percent_of_the_firsts_prompt(
    served: ChatEndpoint, trip: Task
) -> None:
    """Counted by the server: what its prefix cache spared at turn 2 of a future."""
    first = Conversation().add("user", "I want to go on a trip.")
    first = first.add("assistant", "Which city do you want to visit?")
    second = first.add("user", "To Lisbon, please.").add("assistant", "How many days do you have?")
    persona = sample_persona(1)

    async def ask() -> list[ChatAnswer[Turn]]:
        client = ChatClient(served)
        await until_it_answers(client)
        return [
            await client.structured(
                turn_messages(trip, persona, "A chat.", talk), Turn, seed=1, max_tokens=60
            )
            for talk in (first, second)
        ]

    usage = asyncio.run(ask())[1].usage
    assert usage["calls"] == 1 and usage["cached_tokens"] > 0.8 * usage["prompt_tokens"]


def test_a_model_it_does_not_have_is_named_with_those_it_has(served: ChatEndpoint) -> None:
    async def probe() -> None:
        await until_it_answers(ChatClient(served))
        await ChatClient(served.model_copy(update={"model": "big"})).probe()

    with pytest.raises(ChatFailed, match=r"no model big; it has little"):
        asyncio.run(probe())


def test_a_port_that_is_taken_is_found_before_the_start(gguf: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(EndpointError, match=r"--port"):
            LocalEndpoint(gguf, "little", port=port).check()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": Path("none.gguf")}, "there is no such file"),
        ({"parallel": 0}, "--parallel 0"),
        ({"context": 1}, "--context 1"),
        ({"port": 99999}, "cannot listen there"),
    ],
)
def test_what_cannot_be_served_is_said(gguf: Path, change: dict[str, object], reason: str) -> None:
    settings: dict[str, object] = {"model": gguf, "name": "little", "port": free_port(), **change}
    with pytest.raises(EndpointError, match=reason):
        LocalEndpoint(**settings).check()  # type: ignore[arg-type]


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"no model")
    local = LocalEndpoint(tmp_path / "a.gguf", "little", port=free_port())
    with pytest.raises(EndpointError, match=r"llama\.cpp cannot serve it"), llama_server(local):
        pass


def test_on_a_gpu_sglang_is_started_with_the_same_settings() -> None:
    command = sglang_command(LocalEndpoint(Path("/m"), "big", port=1, parallel=8, context=512))
    assert command[1:3] == ["-m", "sglang.launch_server"]
    told = dict(zip(command[3::2], command[4::2], strict=True))
    assert told["--served-model-name"] == "big" and told["--context-length"] == "512"
