"""The chat client: what is sent, what is read, what it costs, and where the key goes."""

from __future__ import annotations

import asyncio
import gc
import logging
import traceback
from pathlib import Path

import pytest

from interaction.chat import ChatFailed, ChatUnreadable
from interaction.conversation import Message
from serving.chat_client import ChatClient
from serving.chat_endpoint import ChatEndpoint
from tests.serving.fault_server import fault_server, says, status
from tests.serving.patient_client import QUESTION, Patient, Turn


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ('{"message": "hi"}', "hi"),
        ('Sure! {"message": "hi"} There.', "hi"),
        ('{"message": "\U0001f600 \\u2264"}', "\U0001f600 \u2264"),
        ('{"message": "he said "hi" twice"}', 'he said "hi" twice'),
        ('{"message": "5"}', "5"),
        ('{"message": 5}', "5"),
    ],
)
def test_an_object_is_read(said: str, message: str, limits: Path) -> None:
    with fault_server(says(said)) as server:
        assert Patient(server, limits).structured().value == Turn(message=message)
    sent = server.log.bodies[0]["response_format"]
    assert sent["type"] == "json_schema" and sent["json_schema"]["name"] == "Turn"
    schema = sent["json_schema"]["schema"]
    assert schema["required"] == ["message", "done", "mood"]
    assert schema["additionalProperties"] is False and "minimum" not in str(schema)


@pytest.mark.parametrize("said", ['{"message": "half', "5", "true", "no", '{"message": null}'])
def test_what_is_no_object_of_the_form_is_unreadable_and_not_asked_again(
    said: str, limits: Path
) -> None:
    with fault_server(says(said)) as server:
        patient = Patient(server, limits)
        with pytest.raises(ChatUnreadable) as caught:
            patient.structured()
    assert caught.value.text == said and len(server.log.bodies) == 1
    assert patient.client.totals.failures == {"unreadable": 1}


@pytest.mark.parametrize("said", ["5", "true", "0", "\U0001f600", "\u2264"])
def test_a_text_is_given_as_it_was_said(said: str, limits: Path) -> None:
    with fault_server(says(said)) as server:
        assert Patient(server, limits).complete().value == said


def test_words_instead_of_a_schema_can_be_chosen(limits: Path) -> None:
    with fault_server(says('{"message": "hi"}')) as server:
        Patient(server, limits, structured_output="none").structured()
    assert "response_format" not in server.log.bodies[0]


def test_settings_reach_the_server(limits: Path) -> None:
    with fault_server(says("hi")) as server:
        patient = Patient(server, limits, temperature=0.3, top_p=0.9, extra_body={"top_k": 7})
        patient.complete(seed=2**40 + 3, max_tokens=9)
    body = server.log.bodies[0]
    told = [body[name] for name in ("temperature", "top_p", "top_k", "seed", "max_tokens")]
    assert told == [0.3, 0.9, 7, 3, 9] and body["messages"][1] == {"role": "user", "content": "Hi"}


def test_usage_and_totals_count_every_call(limits: Path) -> None:
    prices = {"price_per_million_prompt": 1e5, "price_per_million_completion": 2e5}
    with fault_server(says("ha", "length"), status(500), says("right")) as server:
        patient = Patient(server, limits, "judge", **prices)
        usage = patient.complete().usage
    counted = {name: value for name, value in usage.items() if name != "seconds"}
    assert counted == {
        "calls": 3, "prompt_tokens": 20, "cached_tokens": 8, "completion_tokens": 10, "cost": 4,
    }  # fmt: skip
    metrics = patient.client.totals.metrics()
    assert metrics["judge/calls"] == 3 and metrics["judge/failed/length"] == 1
    assert metrics["judge/cost"] == 4 and metrics["judge/seconds"] == usage["seconds"] > 0


def test_the_key_goes_to_the_server_and_nowhere_else(
    limits: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("THE_KEY", "sk-secret")
    caplog.set_level(logging.DEBUG)
    steps = status(500, "your key sk-secret"), status(401, "Incorrect API key provided: sk-secret")
    with fault_server(*steps) as server:
        patient = Patient(server, limits, api_key_env="THE_KEY")
        with pytest.raises(ChatFailed) as caught:
            patient.complete()
    error: BaseException | None = caught.value
    shown = [*traceback.format_exception(caught.value), repr(patient.client), caplog.text]
    while error is not None:
        shown.append(repr(error))
        error = error.__context__
    ours = "\n".join(shown)
    assert server.log.headers[0]["authorization"] == "Bearer sk-secret"
    assert "Incorrect API key provided: ***" in ours and "sk-secret" not in ours


def test_a_local_server_is_not_sent_the_key_of_openai(
    limits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with fault_server(says("hi")) as server:
        Patient(server, limits).complete()
    assert "sk-secret" not in str(server.log.headers)


def test_one_client_serves_two_event_loops_and_forgets_a_closed_one(limits: Path) -> None:
    with fault_server(says("hi")) as server:
        patient = Patient(server, limits)

        async def ask() -> None:
            await asyncio.gather(*(patient.client.complete(QUESTION, seed=i) for i in range(4)))
            await patient.client.close()

        asyncio.run(ask())
        asyncio.run(ask())
    gc.collect()
    assert len(server.log.bodies) == 8 and len(patient.client._calls._connections) == 0


def test_a_call_waiting_to_be_repeated_holds_no_slot(limits: Path) -> None:
    with fault_server(status(500), says("hi")) as server:
        endpoint = ChatEndpoint(model="m", base_url=server.url, concurrency=1, limits_dir=limits)

        async def ask() -> None:
            waiting, go_on = asyncio.Event(), asyncio.Event()

            async def sleep(_: float) -> None:
                waiting.set()
                await go_on.wait()

            client = ChatClient(endpoint, sleep=sleep)
            first = asyncio.create_task(client.complete(QUESTION, seed=1))
            await waiting.wait()
            await asyncio.wait_for(client.complete(QUESTION, seed=2), 5)
            go_on.set()
            await first

        asyncio.run(ask())


def test_turns_of_one_role_in_a_row_can_be_merged(limits: Path) -> None:
    talk = [*QUESTION, Message("user", "Still there?"), Message("assistant", "Yes.")]
    with fault_server(says("hi")) as server:
        client = Patient(server, limits, merge_turns=True).client
        asyncio.run(client.complete(talk, seed=1))
    sent = server.log.bodies[0]["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant"]
    assert sent[1]["content"] == "Hi\n\nStill there?" and talk[1].content == "Hi"
