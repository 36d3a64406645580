"""Does the place of a conversation in a group change its score? The measurement.

The same group is judged in several orders that put everyone in every place.
Promises: real verdicts only; an order that failed is left out and counted. Knows nothing of
prompts, nor of the arithmetic (order_effect.py).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

import numpy as np

from interaction.conversation import Conversation
from interaction.seeds import derive_seed
from interaction.task import Task
from reward.judge.group import group_verdicts
from reward.judge.judge import Judge
from reward.judge.order_effect import OrderBias, measured
from reward.judge.question import JudgeFailed, Question, ScoreField, Verdict


async def order_bias(
    judge: Judge,
    task: Task,
    conversations: Sequence[Conversation],
    questions: Sequence[Question],
    *,
    rounds: int = 24,
    given: int = 0,
    seed: int = 0,
) -> OrderBias:
    """Judge a group in several orders and compare.

    Args:
        judge: Who judges.
        task: What all conversations were about.
        conversations: Two or more, equal in their first `given` messages.
        questions: Their number fields, brought to 0..1, are averaged.
        rounds: Orders, one call each, 2 or more; a multiple of the group's size puts everyone
            in every place equally often. With few the intervals are too narrow.
        given: Leading messages that were there before the policy spoke.
        seed: Of orders, calls and intervals.

    Raises:
        ValueError: If the group or the number of rounds is too small, or no question has a
            number.
        JudgeFailed: If fewer than two orders were judged.
    """
    if len(conversations) < 2 or rounds < 2:
        raise ValueError("order bias needs two conversations and two rounds or more")
    orders = list(balanced_orders(len(conversations), rounds, seed))
    results = await asyncio.gather(
        *(
            _judged(judge, task, conversations, questions, given, derive_seed(seed, r), order)
            for r, order in enumerate(orders)
        )
    )
    failures = [result for result in results if isinstance(result, JudgeFailed)]
    judged = [
        (result, order)
        for result, order in zip(results, orders, strict=True)
        if not isinstance(result, JudgeFailed)
    ]
    if len(judged) < 2:
        raise JudgeFailed(f"fewer than two orders were judged: {failures[0]}")
    scores, kept = zip(*judged, strict=True)
    return measured(np.array(scores), kept, seed, failed=len(failures))


def balanced_orders(n: int, rounds: int, seed: int) -> Iterator[list[int]]:
    """Yield orders of `n`; in every `n` of them each number has had each place once."""
    rng = random.Random(seed)
    for number in range(rounds):
        if number % n == 0:
            base = rng.sample(range(n), n)
        yield base[number % n :] + base[: number % n]


async def _judged(
    judge: Judge,
    task: Task,
    conversations: Sequence[Conversation],
    questions: Sequence[Question],
    given: int,
    seed: int,
    order: Sequence[int],
) -> list[float] | JudgeFailed:
    members = group_verdicts(
        judge, task, conversations, questions, given=given, seed=seed, order=order
    )
    try:
        return [
            mean_score({question: await member.of(question) for question in questions})
            for member in members
        ]
    except JudgeFailed as failure:
        return failure


def mean_score(verdicts: Mapping[Question, Verdict]) -> float:
    """Return the mean of all number fields, each brought to 0..1.

    Raises:
        ValueError: If there is none.
    """
    scores = [
        (float(verdict[field.name]) - field.low) / (field.high - field.low)
        for question, verdict in verdicts.items()
        for field in question.fields
        if isinstance(field, ScoreField)
    ]
    if not scores:
        raise ValueError("no question has a number")
    return fmean(scores)
