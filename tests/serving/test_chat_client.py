"""The chat client against a server that misbehaves: a right turn or a typed failure, no third."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import time
import traceback
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from interaction.chat import ChatFailed, ChatUnreadable
from interaction.conversation import Message
from serving.chat_client import ChatClient, connect
from serving.chat_endpoint import ChatEndpoint, endpoint_from
from tests.serving import fault_server as fault
from tests.serving.fault_server import fault_server, says, status

QUESTION = [Message("system", "Be brief."), Message("user", "Hi")]


class Turn(BaseModel):
    message: str
    done: bool = False
    mood: float = Field(default=0.5, ge=0, le=1)


@pytest.fixture
def limits(tmp_path: Path) -> Path:
    return tmp_path / "limits"


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


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (status(429), "http_429"),
        (status(500), "http_500"),
        (status(503), "http_503"),
        (status(408), "http_408"),
        (status(409), "http_409"),
        (fault.hang, "timeout"),
        (fault.dribble, "timeout"),
        (fault.drop, "connection"),
        (fault.cut_body, "connection"),
        (says(""), "empty"),
        (says(" \n"), "empty"),
        (says(None), "empty"),
        (says("half an ans", "length"), "length"),
        (says("half an ans", "content_filter"), "filtered"),
        (says("half an emoji \ud83d"), "malformed"),
        (fault.raw({"choices": []}), "malformed"),
        (fault.raw({"object": "error"}), "malformed"),
        (fault.raw("hi"), "malformed"),
        (fault.raw(None), "malformed"),
    ],
)
def test_a_passing_fault_is_tried_again_and_a_lasting_one_is_a_failure(
    step: fault.Step, kind: str, limits: Path
) -> None:
    timeout_s = 1.0 if kind == "timeout" else 10.0
    with fault_server(step, says("right")) as server:
        patient = Patient(server, limits, timeout_s=timeout_s)
        answer = patient.complete()
    assert answer.value == "right" and answer.usage["calls"] == 2
    assert patient.client.totals.failures == {kind: 1} and len(patient.waits) == 1
    with fault_server(step) as server:
        patient = Patient(server, limits, timeout_s=timeout_s, max_attempts=2)
        with pytest.raises(ChatFailed, match="2 tries"):
            patient.complete()
    assert patient.client.totals.failures == {kind: 2}
    assert len(patient.waits) == 1, "no wait follows the last try"


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (400, "check the length of the conversation"),
        (401, "check the key in THE_KEY"),
        (403, "key in THE_KEY must be allowed"),
        (404, r"judge\.model, and that judge\.base_url ends in /v1"),
    ],
)
def test_a_refusal_is_not_repeated_and_says_what_to_do(
    code: int, advice: str, limits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", "sk-secret")
    with fault_server(status(code)) as server:
        patient = Patient(server, limits, "judge", api_key_env="THE_KEY")
        with pytest.raises(ChatFailed, match=f"{server.url} .*HTTP {code}.*{advice}"):
            patient.complete()
    assert len(server.log.bodies) == 1 and patient.waits == []


def test_an_account_without_money_is_not_waited_for(limits: Path) -> None:
    def broke(handler: fault.Handler) -> None:
        handler.answer({"error": {"message": "pay", "code": "insufficient_quota"}}, 429)

    with fault_server(broke) as server, pytest.raises(ChatFailed, match="pay"):
        Patient(server, limits).complete()
    assert len(server.log.bodies) == 1


@pytest.mark.parametrize("seed", range(5))
def test_all_waits_together_stay_within_the_budget(seed: int, limits: Path) -> None:
    random.seed(seed)
    with fault_server(status(500)) as server:
        patient = Patient(server, limits, max_attempts=50, max_wait_s=7)
        with pytest.raises(ChatFailed, match="max_wait_s"):
            patient.complete()
    assert sum(patient.waits) == pytest.approx(7)
    assert len(server.log.bodies) == len(patient.waits) + 1
    assert len(set(patient.waits)) > 3, "waits are jittered"


@pytest.mark.parametrize("code", [429, 503])
def test_retry_after_is_honoured(code: int, limits: Path) -> None:
    in_20_s = formatdate(usegmt=True, timeval=time.time() + 20)
    steps = status(code, Retry_After="7"), status(code, Retry_After=in_20_s), says("right")
    with fault_server(*steps) as server:
        patient = Patient(server, limits)
        assert patient.complete().value == "right"
    assert 7 <= patient.waits[0] <= 7.7 and 15 <= patient.waits[1] <= 23


@pytest.mark.parametrize("header", ["0", "-3", "nan", "soon"])
def test_a_retry_after_that_says_nothing_leaves_the_own_wait(header: str, limits: Path) -> None:
    with fault_server(status(429, Retry_After=header), says("right")) as server:
        patient = Patient(server, limits)
        assert patient.complete().value == "right"
    assert 0 < patient.waits[0] < 2


def test_a_retry_after_beyond_the_budget_fails_at_once(limits: Path) -> None:
    with fault_server(status(429, Retry_After="120")) as server:
        patient = Patient(server, limits, max_wait_s=60)
        with pytest.raises(ChatFailed, match="asks to wait 120 s, and 60 s are left"):
            patient.complete()
    assert patient.waits == [] and len(server.log.bodies) == 1


def test_no_server_says_how_to_start_one(limits: Path) -> None:
    with fault_server(says("hi")) as server:
        patient = Patient(server, limits, max_attempts=2)
    with pytest.raises(ChatFailed, match=rf"{server.url}.*collabllm serve.*user\.base_url"):
        patient.complete()


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


def test_an_endpoint_without_schemas_is_asked_in_words_from_then_on(limits: Path) -> None:
    with fault_server(fault.refuses("response_format", says('{"message": "hi"}'))) as server:
        patient = Patient(server, limits)
        assert [patient.structured().value.message for _ in range(2)] == ["hi", "hi"]
    asked = ["response_format" in body for body in server.log.bodies]
    assert asked == [True, False, False] and patient.waits == []
    last = server.log.bodies[-1]["messages"]
    assert last[0]["content"] == "Be brief."
    assert last[-1]["content"].startswith("Hi\n\n") and '"message"' in last[-1]["content"]


def test_an_endpoint_without_seeds_is_asked_without(limits: Path) -> None:
    with fault_server(fault.refuses("seed", says("hi"))) as server:
        assert Patient(server, limits).complete().value == "hi"
    assert ["seed" in body for body in server.log.bodies] == [True, False]


def test_only_a_useless_answer_is_asked_for_with_another_seed(limits: Path) -> None:
    faults = (status(500), says(""), says("half an ans", "length"), fault.drop, says("hi"))
    with fault_server(*faults) as server:
        assert Patient(server, limits).complete(seed=5).value == "hi"
    assert [body["seed"] for body in server.log.bodies] == [5, 5, 6, 7, 7]


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


def test_an_answer_at_temperature_0_is_kept(limits: Path, tmp_path: Path) -> None:
    cache = {"temperature": 0, "cache_dir": tmp_path / "cache"}
    with fault_server(says("hi")) as server:
        first, second = Patient(server, limits, **cache), Patient(server, limits, **cache)
        assert first.complete().value == second.complete().value == "hi"
        assert second.complete().usage["calls"] == 0
        assert second.client.totals.cache_hits == 2 and len(server.log.bodies) == 1
        first.complete(seed=2)
        assert len(server.log.bodies) == 2, "another seed is another question"


def test_nothing_is_kept_above_temperature_0(limits: Path, tmp_path: Path) -> None:
    with fault_server(says("hi")) as server:
        patient = Patient(server, limits, temperature=0.1, cache_dir=tmp_path / "cache")
        patient.complete()
        patient.complete()
    assert len(server.log.bodies) == 2 and not (tmp_path / "cache").exists()


@pytest.mark.parametrize("spoiled", ["", "{", "[]", '{"text": 5}', '{"text": ""}'])
def test_a_spoiled_cache_file_is_a_miss(limits: Path, tmp_path: Path, spoiled: str) -> None:
    folder = tmp_path / "cache"
    with fault_server(says("hi")) as server:
        patient = Patient(server, limits, temperature=0, cache_dir=folder)
        patient.complete()
        (kept,) = folder.rglob("*.json")
        kept.write_text(spoiled)
        assert patient.complete().value == "hi"
    assert len(server.log.bodies) == 2 and not list(folder.rglob("*.part"))


def test_an_unreadable_answer_is_not_kept(limits: Path, tmp_path: Path) -> None:
    with fault_server(says("what?"), says('{"message": "hi"}')) as server:
        patient = Patient(server, limits, temperature=0, cache_dir=tmp_path / "cache")
        with pytest.raises(ChatUnreadable):
            patient.structured()
        assert patient.structured().value.message == "hi"


def test_a_cache_that_cannot_be_written_costs_no_answer(limits: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with fault_server(says("hi")) as server:
        patient = Patient(server, limits, temperature=0, cache_dir=tmp_path / "file")
        assert patient.complete().value == "hi"


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


def probe(server: fault.Server, limits: Path, **change: Any) -> None:
    asyncio.run(Patient(server, limits, "judge", **change).client.probe())


def test_a_probe_passes_where_the_model_is_offered_or_answers(limits: Path) -> None:
    with fault_server(status(500), models=["n", "models/m"]) as server:
        probe(server, limits)
    with fault_server(says("H", "length")) as server:
        probe(server, limits)
    assert server.log.bodies[0]["max_tokens"] == 1


def test_a_probe_names_what_is_wrong_and_the_remedy(limits: Path) -> None:
    with fault_server(says("hi"), models=["n"]) as server:
        with pytest.raises(ChatFailed, match=r"no model m; it has n.*judge\.model"):
            probe(server, limits)
    with fault_server(status(404)) as server:
        with pytest.raises(ChatFailed, match=rf"{server.url}.*judge\.base_url ends in /v1"):
            probe(server, limits)
    with pytest.raises(ChatFailed, match=rf"{server.url}.*collabllm serve.*judge\.base_url"):
        probe(server, limits)


def test_connect_names_the_bad_key(limits: Path) -> None:
    with pytest.raises(ValueError, match=r"judge\.modell: no such key"):
        connect({"modell": "m"}, "judge")
    client = connect({"model": "m", "base_url": "http://localhost/v1"}, "judge")
    assert client.totals.role == "judge"
