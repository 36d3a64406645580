"""Answers kept at temperature 0: the same question costs nothing twice, and nothing else is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from interaction.chat import ChatUnreadable
from tests.serving.fault_server import fault_server, says
from tests.serving.patient_client import Patient


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
