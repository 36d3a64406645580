"""The family `planning`: domains that make sense, problems that differ, contexts that fit."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from pathlib import Path

import pytest

from data.planning import domains
from data.planning.build import SEEN, UNSEEN, build_planning
from data.planning.context import CONTEXTS, make_context
from data.planning.domains import Domain, load_domains
from data.planning.problem import distinct_problems, sample_problem
from interaction.agenda import stand
from interaction.questions import questions_in
from interaction.seeds import derive_random
from interaction.wording import mentions

HELD_OUT_SHA256 = "699310ec46008a946f8fb60c339c0072cfb359876b45d7408e7c3e2373670de2"
TRAINED, HELD_OUT = load_domains(), load_domains(held_out=True)
ALL = [pytest.param(domain, id=domain.name) for domain in (*TRAINED, *HELD_OUT)]


def test_there_are_enough_domains_and_held_out_ones_share_no_slot() -> None:
    assert len(TRAINED) >= 24 and len(HELD_OUT) >= 8
    trained = {slot for domain in TRAINED for slot in domain.slots}
    assert not trained & {slot for domain in HELD_OUT for slot in domain.slots}


def test_the_held_out_domains_are_the_frozen_ones() -> None:
    """Whoever changes them makes every earlier result on `planning_unseen` another result."""
    file = Path(domains.__file__).with_name("held_out.yaml")
    assert hashlib.sha256(file.read_bytes()).hexdigest() == HELD_OUT_SHA256


@pytest.mark.parametrize("domain", ALL)
def test_every_question_asks_for_its_own_slot_and_no_other(domain: Domain) -> None:
    asks = {name: (name, *slot.phrases) for name, slot in domain.slots.items()}
    for name, slot in domain.slots.items():
        for text in slot.questions:
            assert [q.slots for q in questions_in(text, asks)] == [(name,)], text


@pytest.mark.parametrize("domain", ALL)
def test_no_value_is_told_by_anything_but_its_own_statement(domain: Domain) -> None:
    for slot in domain.slots.values():
        others = [s for s in domain.slots.values() if s is not slot]
        told = [o.say.format(value=v) for o in others for v in o.values]
        for value in slot.values:
            assert mentions(slot.say.format(value=value), value)
            assert not any(mentions(text, value) for text in (*told, *domain.requests)), value
        for a, b in itertools.permutations(slot.values, 2):
            assert not mentions(a, b)


def test_a_problem_has_three_or_four_facts_and_the_rest_does_not_matter() -> None:
    for i, domain in enumerate(TRAINED):
        task = sample_problem(domain, derive_random("test", i))
        assert len(task.goal.facts) in (3, 4)
        assert {f.slot for f in task.goal.facts} | set(task.goal.indifferent) == set(domain.slots)


def test_there_are_thousands_of_distinct_problems() -> None:
    problems = list(itertools.islice(distinct_problems(TRAINED, derive_random(1)), 3000))
    assert len({task.task_id for task in problems}) == 3000


@pytest.mark.parametrize("kind", CONTEXTS)
def test_contexts_are_what_their_name_says(kind: str) -> None:
    for i in range(60):
        domain = TRAINED[i % len(TRAINED)]
        rng = derive_random("context", kind, i)
        task = sample_problem(domain, rng)
        talk = asyncio.run(make_context(kind, task, domain, "Be kind.", rng))
        standing = stand(task.goal, talk.messages)
        assert talk.messages[0].role == "system" and talk.messages[-1].role == "user"
        if kind in ("terminal", "complete"):
            assert standing.answer_due and not standing.missing
        else:
            assert standing.missing and not standing.closed
        if kind == "opening":
            assert len(talk.messages) == 2 and len(standing.told) <= 1
        if kind == "terminal":
            assert standing.closed


def test_an_unknown_context_is_refused() -> None:
    with pytest.raises(ValueError, match="no such context"):
        task = sample_problem(TRAINED[0], derive_random(0))
        asyncio.run(make_context("late", task, TRAINED[0], "s", derive_random(0)))


def build(seed: int, rows: int = 60) -> tuple[list[str], list[str]]:
    contexts = {"opening": 1.0, "middle": 1.0, "terminal": 1.0, "complete": 1.0}
    train, validation = build_planning(
        train_rows=rows, validation_rows=20, contexts=contexts, system_prompt="s", seed=seed
    )
    assert [e.data_source for e in validation] == [SEEN] * 10 + [UNSEEN] * 10
    assert {e.context for e in train} == set(contexts)
    as_text = [[str(e.to_row(0, "train")) for e in part] for part in (train, validation)]
    assert not {e.task.task_id for e in train} & {e.task.task_id for e in validation}
    return as_text[0], as_text[1]


def test_the_same_seed_makes_the_same_rows_and_another_makes_others() -> None:
    assert build(1) == build(1)
    assert build(1) != build(2)
