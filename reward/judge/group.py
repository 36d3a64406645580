"""Group mode: one call scores several conversations that begin alike, side by side.

    members = group_verdicts(judge, task, futures, questions, given=1, seed=7)
    verdict = await members[2].of(question)  # about futures[2]; all members share the call

A judge that sees the replies to one prompt together tells smaller differences apart, and may
prefer a place in the line; so their order is drawn by seed, and order_bias.py measures what it
does. Promises: every conversation gets the verdicts given under its own number. Knows nothing
of metrics or of how members are averaged.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from interaction.conversation import Conversation
from interaction.task import Task
from reward.judge.fence import fenced, read_fenced
from reward.judge.judge import Judge, JudgeVerdicts, Slot, by_name
from reward.judge.prompt import JudgePrompt, made_of, prompt_text
from reward.judge.question import Question
from reward.judge.shared_call import SharedCall
from reward.judge.transcript import Shown, read_turns, shown, turn_lines


def group_verdicts(
    judge: Judge,
    task: Task,
    conversations: Sequence[Conversation],
    questions: Sequence[Question],
    *,
    given: int = 0,
    seed: int = 0,
    order: Sequence[int] | None = None,
) -> list[JudgeVerdicts]:
    """Return the answers about each conversation of a group, to be awaited.

    Args:
        judge: Who judges; a group is one call whatever its `calls` says.
        task: What all of them were about.
        conversations: Equal in their first `given` messages.
        questions: What may be asked.
        given: Leading messages that were there before the policy spoke; shown once.
        seed: Of the order and the call.
        order: Positions in `conversations` in the order they are shown; None to draw one.

    Raises:
        ValueError: If the conversations begin differently, the order is none, or names clash.
    """
    if len({c.messages[:given] for c in conversations}) > 1:
        raise ValueError(f"the conversations of a group differ in their first {given} messages")
    order = drawn_order(len(conversations), seed) if order is None else list(order)
    if sorted(order) != list(range(len(conversations))):
        raise ValueError(f"{order} is no order of {len(conversations)} conversations")
    asked = by_name(questions)
    shown_order = [conversations[member] for member in order]

    def prompt(wanted: Sequence[Question]) -> JudgePrompt:
        return group_prompt(task, wanted, shown_order, given, judge.key, seed)

    keys = {
        (place, name): f"conversation_{place}_{name}"
        for place in range(1, len(order) + 1)
        for name in asked
    }
    by_key = {key: asked[name] for (_, name), key in keys.items()}
    call = SharedCall(partial(judge.answers, task, by_key, prompt, seed))
    place_of = {member: place for place, member in enumerate(order, 1)}
    return [
        JudgeVerdicts(
            {q: Slot(call, keys[place_of[member], name]) for name, q in asked.items()},
            share=1 / len(order),
        )
        for member in range(len(order))
    ]


def drawn_order(n: int, seed: int) -> list[int]:
    """Return the numbers below `n` in an order drawn by seed."""
    return random.Random(seed).sample(range(n), n)


def group_prompt(
    task: Task,
    questions: Sequence[Question],
    conversations: Sequence[Conversation],
    given: int,
    key: bytes,
    seed: int,
) -> JudgePrompt:
    """Return the prompt about conversations in the order given.

    Raises:
        JudgeFailed: If the policy has no turn in one of them.
        ValueError: If a text holds half a surrogate pair.
    """
    talks = [shown(conversation, given) for conversation in conversations]
    blocks = [*_common(talks[0], key, seed)] if talks else []
    for place, talk in enumerate(talks, 1):
        lines = turn_lines(talk.conversation, start=talk.given)
        blocks.append(fenced(f"conversation_{place}", lines, key, str(seed)))
    closing = prompt_text("group").substitute(
        count=len(talks), first=talks[0].first if talks else 1
    )
    return made_of(task, questions, blocks, closing, key)


def read_group_prompt(text: str, count: int) -> list[Conversation]:
    """Return the conversations that a prompt about a group shows, in its order, exactly.

    Raises:
        ValueError, KeyError: If the text is no such prompt.
    """
    common = read_fenced(text, "common") if "\n<common " in f"\n{text}" else []
    names = [f"conversation_{place}" for place in range(1, count + 1)]
    return [read_turns([*common, *read_fenced(text, name)]) for name in names]


def _common(talk: Shown, key: bytes, seed: int) -> list[str]:
    """Return the block of turns that all members share, if there are any."""
    start = replace(talk.conversation, messages=talk.conversation.messages[: talk.given], stop=None)
    lines = turn_lines(start)
    return [fenced("common", lines, key, str(seed))] if lines else []
