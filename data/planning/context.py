"""Contexts in which the policy replies to a planning problem.

    opening   the vague request, a fact volunteered now and then
    middle    after one or two questions that somebody asked well; something is still missing
    terminal  everything is told: "That is all. What do you suggest?"
    complete  a request that says everything at once; nothing is to be asked

Promises: every context is a conversation that the agenda user could have had; the same seed
gives the same one. Knows nothing of files.
"""

from __future__ import annotations

import random

from data.planning.domains import Domain
from interaction.agenda import CLOSINGS, stand
from interaction.agenda_user import AgendaUser
from interaction.conversation import Conversation
from interaction.seeds import derive_seed
from interaction.task import Task

CONTEXTS = ("opening", "middle", "terminal", "complete")


async def make_context(
    kind: str, task: Task, domain: Domain, system_prompt: str, rng: random.Random
) -> Conversation:
    """Return a context of a kind, ending with a user turn.

    Raises:
        ValueError: If there is no such kind.
    """
    seed = rng.getrandbits(62)
    start = Conversation().add("system", system_prompt)
    if kind == "complete":
        facts = " ".join(fact.statement for fact in task.goal.facts)
        return start.add("user", f"{task.metadata['request']} {facts} What do you suggest?")
    opened = start.add("user", AgendaUser().open(task, seed).text)
    if kind == "opening":
        return opened
    if kind == "middle":
        rounds = rng.choice((1, 1, 2))
        return await _asked(opened, task, domain, rounds, leave=1, seed=seed, rng=rng)
    if kind == "terminal":
        return await _told_all(opened, task, domain, seed, rng)
    raise ValueError(f"no such context {kind!r}; there are: {', '.join(CONTEXTS)}")


async def _asked(
    conversation: Conversation,
    task: Task,
    domain: Domain,
    rounds: int,
    *,
    leave: int,
    seed: int,
    rng: random.Random,
) -> Conversation:
    """Let somebody ask well for some rounds, as long as more than `leave` facts are missing."""
    for number in range(rounds):
        missing = stand(task.goal, conversation.messages).missing
        if len(missing) <= leave:
            break
        question = rng.choice(domain.slots[rng.choice(missing).slot].questions)
        tried = conversation.add("assistant", question)
        answer = await AgendaUser().reply(task, tried, derive_seed(seed, number))
        tried = tried.add("user", answer.text)
        if answer.done or len(stand(task.goal, tried.messages).missing) < leave:
            break
        conversation = tried
    return conversation


async def _told_all(
    conversation: Conversation, task: Task, domain: Domain, seed: int, rng: random.Random
) -> Conversation:
    """Ask for facts one by one until none is left; the user closes."""
    conversation = await _asked(conversation, task, domain, 3, leave=1, seed=seed, rng=rng)
    missing = stand(task.goal, conversation.messages).missing
    if not missing:  # the opening volunteered the last one
        return conversation
    question = " ".join(rng.choice(domain.slots[fact.slot].questions) for fact in missing)
    told = " ".join(fact.statement for fact in missing)
    return conversation.add("assistant", question).add("user", f"{told} {rng.choice(CLOSINGS)}")
