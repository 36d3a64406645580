"""A planning problem: a domain, three or four facts, and slots that do not matter.

Promises: its id is made of domain and facts, so that equal problems have equal ids; the same
seed gives the same problem. Knows nothing of contexts or splits.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from hashlib import blake2b

from data.planning.domains import Domain, Slot
from interaction.task import Fact, Goal, Task


def sample_problem(domain: Domain, rng: random.Random) -> Task:
    """Return a random problem of a domain."""
    known = rng.sample(sorted(domain.slots), k=rng.choice((3, 4, 4)))
    facts = tuple(_fact(domain.slots[name], rng) for name in known)
    indifferent = {
        name: domain.slots[name].phrases for name in sorted(domain.slots) if name not in known
    }
    request = rng.choice(domain.requests)
    return Task(
        task_id=_problem_id(domain, facts),
        family="planning",
        goal=Goal(
            summary=f"{request} {' '.join(fact.statement for fact in facts)}",
            facts=facts,
            indifferent=indifferent,
        ),
        metadata={"domain": domain.name, "request": request},
    )


def distinct_problems(domains: Sequence[Domain], rng: random.Random) -> Iterator[Task]:
    """Yield problems without end, domain after domain, no problem twice.

    Raises:
        ValueError: If the domains have no further problem (many thousands each).
    """
    seen: set[str] = set()
    while True:
        order = list(domains)
        rng.shuffle(order)
        for domain in order:
            task = next(
                (
                    t
                    for t in (sample_problem(domain, rng) for _ in range(100))
                    if t.task_id not in seen
                ),
                None,
            )
            if task is None:
                raise ValueError(
                    f"the domain {domain.name!r} has no further problem; ask for fewer rows"
                )
            seen.add(task.task_id)
            yield task


def _fact(slot: Slot, rng: random.Random) -> Fact:
    value = rng.choice(slot.values)
    return Fact(
        slot=slot.name,
        value=value,
        statement=slot.say.format(value=value),
        phrases=slot.phrases,
        alternatives=tuple(other for other in slot.values if other != value),
    )


def _problem_id(domain: Domain, facts: Sequence[Fact]) -> str:
    told = "|".join(sorted(f"{fact.slot}={fact.value}" for fact in facts))
    return f"planning/{domain.name}/{blake2b(told.encode(), digest_size=8).hexdigest()}"
