"""What is found out about an endpoint before it is needed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from interaction.chat import ChatFailed
from serving.chat_client import connect
from tests.serving import fault_server as fault
from tests.serving.fault_server import fault_server, says, status
from tests.serving.patient_client import Patient


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
