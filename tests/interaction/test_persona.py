"""Personas: the file, its checks, and that users made of rules meet the same people as ever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from interaction.agenda_user import AgendaUser
from interaction.persona import (
    PERSONAS,
    all_personas,
    choose_personas,
    read_personas,
    sample_persona,
)

ROW: dict[str, Any] = {
    "name": "ann",
    "patience": 2,
    "terse": False,
    "typo_rate": 0.1,
    "volunteers": 0,
    "answers_per_turn": 1,
    "knowledge": "some",
    "style": "plain",
    "language": "en",
    "mistakes": "none",
}


def written(folder: Path, content: object) -> Path:
    path = folder / "personas.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def test_the_six_rule_made_personas_come_first_with_their_numbers() -> None:
    numbers = [
        (p.name, p.patience, p.terse, p.typo_rate, p.volunteers, p.answers_per_turn)
        for p in PERSONAS
    ]
    assert numbers == [
        ("plain", 2, False, 0.0, 0.1, 2),
        ("terse", 2, True, 0.0, 0.0, 1),
        ("chatty", 3, False, 0.02, 0.4, 3),
        ("hasty", 1, True, 0.08, 0.1, 2),
        ("patient", 4, False, 0.0, 0.2, 2),
        ("sloppy", 2, False, 0.15, 0.2, 2),
    ]
    assert all_personas()[:6] == PERSONAS == choose_personas(None)


def test_a_seed_is_the_person_it_was_before_there_was_a_file() -> None:
    names = """
        plain terse patient terse terse sloppy chatty plain chatty plain chatty hasty chatty
        sloppy hasty terse patient plain patient plain plain hasty chatty chatty
    """.split()
    assert [sample_persona(seed).name for seed in range(24)] == names
    drawn = AgendaUser()._personas
    assert [sample_persona(seed, drawn).name for seed in range(24)] == names


def test_there_are_many_personas_in_several_languages() -> None:
    personas = all_personas()
    assert len(personas) >= 24
    assert {"en", "de", "es", "fr"} == {persona.language for persona in personas}
    assert all(persona.knowledge and persona.style and persona.mistakes for persona in personas)


def test_users_made_of_rules_speak_english_only() -> None:
    assert choose_personas(["expert"])[0].name == "expert"
    with pytest.raises(ValueError, match="persona 'german' speaks 'de'; this user speaks only en"):
        AgendaUser(personas=["plain", "german"])
    assert choose_personas(["german"], languages=None)[0].language == "de"


def test_a_good_file_is_read(tmp_path: Path) -> None:
    (ann,) = read_personas(written(tmp_path, [ROW]))
    assert (ann.name, ann.volunteers, ann.style) == ("ann", 0, "plain")


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("patience", 0, "a whole number from 1, got 0"),
        ("patience", True, "a whole number from 1, got True"),
        ("answers_per_turn", 1.5, "a whole number from 1"),
        ("terse", "yes", "true or false"),
        ("typo_rate", 1.2, "a number from 0 to 1"),
        ("volunteers", "often", "a number from 0 to 1"),
        ("language", "English", "a code of two letters"),
        ("style", " ", "a text"),
        ("knowledge", None, "a text"),
        ("mistakes", 5, "a text"),
    ],
)
def test_a_bad_value_is_named_with_persona_and_key(
    tmp_path: Path, key: str, value: object, reason: str
) -> None:
    with pytest.raises(ValueError, match=rf"persona 1 \(ann\): key '{key}' must be {reason}"):
        read_personas(written(tmp_path, [{**ROW, key: value}]))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ([ROW, {k: v for k, v in ROW.items() if k != "style"}], "persona 2 .*'style' is missing"),
        ([{**ROW, "mood": "bad"}], r"persona 1 \(ann\): unknown key 'mood'; there are: name"),
        ([ROW, ROW], "persona 'ann': key 'name' is taken twice"),
        ([5], "persona 1: expected a mapping, got int"),
        ([], "expected a list of personas"),
    ],
)
def test_a_bad_file_is_refused_with_its_reason(
    tmp_path: Path, content: object, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        read_personas(written(tmp_path, content))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none\.yaml: cannot be read"):
        read_personas(tmp_path / "none.yaml")
