"""Training and validation rows of the family `planning`.

Promises: no problem in both splits; half of validation comes from domains whose slots are
never trained on, under a data source of their own; the same settings give the same rows.
Knows nothing of files.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Mapping, Sequence

from data.example import Example
from data.planning.context import make_context
from data.planning.domains import Domain, load_domains
from data.planning.problem import distinct_problems
from interaction.seeds import derive_random
from interaction.task import Task

SEEN = "planning"
UNSEEN = "planning_unseen"


def build_planning(
    *,
    train_rows: int,
    validation_rows: int,
    contexts: Mapping[str, float],
    system_prompt: str,
    seed: int,
) -> tuple[list[Example], list[Example]]:
    """Return training and validation examples.

    Args:
        contexts: Share of each kind of context, in any unit.
        system_prompt: The policy's system message.
    """
    return asyncio.run(
        _build(train_rows, validation_rows, contexts, system_prompt, seed),
    )


async def _build(
    train_rows: int,
    validation_rows: int,
    contexts: Mapping[str, float],
    system_prompt: str,
    seed: int,
) -> tuple[list[Example], list[Example]]:
    seen, unseen = load_domains(), load_domains(held_out=True)
    problems = distinct_problems(seen, derive_random(seed, "problems"))
    new_problems = distinct_problems(unseen, derive_random(seed, "unseen"))
    half = validation_rows // 2

    async def rows(
        count: int, tasks: Iterator[Task], domains: Sequence[Domain], source: str, name: str
    ) -> list[Example]:
        return [
            await _example(
                next(tasks), domains, contexts, system_prompt, source, derive_random(seed, name, i)
            )
            for i in range(count)
        ]

    train = await rows(train_rows, problems, seen, SEEN, "train")
    validation = await rows(validation_rows - half, problems, seen, SEEN, "validation")
    validation += await rows(half, new_problems, unseen, UNSEEN, "unseen")
    return train, validation


async def _example(
    task: Task,
    domains: Sequence[Domain],
    contexts: Mapping[str, float],
    system_prompt: str,
    source: str,
    rng: random.Random,
) -> Example:
    domain = next(d for d in domains if d.name == task.metadata["domain"])
    kind = rng.choices(list(contexts), weights=list(contexts.values()))[0]
    prompt = await make_context(kind, task, domain, system_prompt, rng)
    return Example(task, prompt, kind, source, ability="planning")
