"""Users by name, out of the YAML that verl had."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from interaction.agenda_user import AgendaUser
from interaction.chat import ChatModel
from interaction.contract import InteractionUser
from interaction.llm_user import LLMUser
from interaction.registry import InteractionConfigError, load_users, read_interactions

AGENDA: dict[str, Any] = {
    "name": "agenda",
    "class_name": "interaction.agenda_user.AgendaUser",
    "config": {},
}


PERSON: dict[str, Any] = {
    "name": "person",
    "class_name": "interaction.llm_user.LLMUser",
    "config": {"endpoint": {"model": "m"}, "personas": ["plain", "german"], "max_tokens": 64},
}


class HalfAnInteraction:
    """Has two of the four methods, and none that makes it a user otherwise."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config

    async def start_interaction(self, instance_id: str | None = None) -> str:
        return instance_id or "x"

    async def generate_response(self, instance_id: str, messages: list[Any]) -> object:
        return None


def connect(endpoint: Mapping[str, Any]) -> ChatModel:
    """Stand in for what makes a client of an endpoint."""
    if "model" not in endpoint:
        raise ValueError("model is missing")
    return cast(ChatModel, dict(endpoint))


def test_an_endpoint_becomes_the_chat_model_of_a_user() -> None:
    user = load_users([PERSON], "test", connect)["person"]
    assert isinstance(user, LLMUser) and user._chat == {"model": "m"}
    assert PERSON["config"]["endpoint"] == {"model": "m"}


@pytest.mark.parametrize(
    ("config", "how", "reason"),
    [
        ({"endpoint": {"model": "m"}}, None, r"1 \(person\): has an endpoint, but nothing conn"),
        ({"endpoint": "m"}, connect, "endpoint must be a mapping, got 'm'"),
        ({"endpoint": {}}, connect, "its config does not fit: model is missing"),
        ({}, connect, "its config does not fit: .*'chat'"),
    ],
)
def test_an_endpoint_that_cannot_be_used_is_named(config: Any, how: Any, reason: str) -> None:
    with pytest.raises(InteractionConfigError, match=reason):
        load_users([{**PERSON, "config": config}], "test", how)


def test_a_class_with_part_of_the_four_methods_is_refused_with_what_it_lacks() -> None:
    entry = {"name": "half", "class_name": f"{__name__}.HalfAnInteraction", "config": {}}
    with pytest.raises(
        InteractionConfigError,
        match=r"1 \(half\): .* lacks calculate_score, finalize_interaction; derive",
    ):
        load_users([entry], "test")


def test_a_simulated_user_is_loaded_by_its_class_name() -> None:
    assert isinstance(load_users([AGENDA], "test")["agenda"], AgendaUser)


def test_a_class_with_the_four_methods_becomes_a_user() -> None:
    entry = {
        "name": "old",
        "class_name": "tests.interaction.test_contract.GradeSchoolInteraction",
        "config": {"limit": 3},
    }
    assert isinstance(load_users([entry], "test")["old"], InteractionUser)


def test_the_file_has_the_shape_that_verl_had(tmp_path: Path) -> None:
    file = tmp_path / "interaction.yaml"
    file.write_text(
        'interaction:\n  - name: "agenda"\n'
        '    class_name: "interaction.agenda_user.AgendaUser"\n    config: {}\n'
    )
    assert list(load_users(read_interactions(file), str(file))) == ["agenda"]


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([{"class_name": "a.B"}], "interaction 1: has no name"),
        ([AGENDA, AGENDA], "interaction 2: the name 'agenda' is taken"),
        ([{**AGENDA, "class_name": "nope"}], "class_name must be module.Class"),
        ([{**AGENDA, "class_name": "interaction.nope.Nope"}], "No module named"),
        ([{**AGENDA, "class_name": "interaction.task.Nope"}], "has no attribute"),
        ([{**AGENDA, "config": {"mood": "bad"}}], "its config does not fit"),
        ([{**AGENDA, "klass": 1}], "unknown key klass"),
        ([{**AGENDA, "class_name": "builtins.dict"}], "neither reply nor generate_response"),
    ],
)
def test_a_faulty_entry_is_named_with_its_reason(entries: list[Any], reason: str) -> None:
    with pytest.raises(InteractionConfigError, match=reason):
        load_users(entries, "users.yaml")


@pytest.mark.parametrize("content", ["", "interaction: 5", "interaction: []", "[1", "a: b"])
def test_a_file_without_a_list_is_refused_by_name(tmp_path: Path, content: str) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text(content)
    with pytest.raises(InteractionConfigError, match=r"broken\.yaml"):
        read_interactions(file)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InteractionConfigError, match=r"none\.yaml"):
        read_interactions(tmp_path / "none.yaml")
