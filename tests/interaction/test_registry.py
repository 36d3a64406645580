"""Users by name, out of the YAML that verl had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interaction.agenda_user import AgendaUser
from interaction.contract import InteractionUser
from interaction.registry import InteractionConfigError, load_users, read_interactions

AGENDA: dict[str, Any] = {
    "name": "agenda",
    "class_name": "interaction.agenda_user.AgendaUser",
    "config": {},
}


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
