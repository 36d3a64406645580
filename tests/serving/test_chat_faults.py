"""The chat client against a server that misbehaves: a right turn or a typed failure, no third."""

from __future__ import annotations

import random
import time
from email.utils import formatdate
from pathlib import Path

import pytest

from interaction.chat import ChatFailed
from tests.serving import fault_server as fault
from tests.serving.fault_server import fault_server, says, status
from tests.serving.patient_client import Patient


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


def test_a_template_that_wants_strict_turns_is_told_how_to_get_them(limits: Path) -> None:
    refusal = status(400, "Conversation roles must alternate user/assistant")
    with (
        fault_server(refusal) as server,
        pytest.raises(ChatFailed, match=r"user\.merge_turns=true"),
    ):
        Patient(server, limits).complete()
