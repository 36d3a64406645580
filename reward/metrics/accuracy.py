r"""`accuracy`: is the last answer right? By rule, for mathematics.

The answer is taken from the policy's last turn: the last \boxed{...}, else what follows
"answer is" or "=", else the last number. math-verify decides whether it equals the ground
truth, so "1/2", "0.5" and "\frac{1}{2}" are one. In {0, 1}. Only short answers are parsed:
a model's text never reaches the parser as a whole.
"""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass

from math_verify import parse, verify

from interaction.conversation import Conversation
from interaction.task import Task
from reward.metric import MetricContext, MetricFailed
from reward.registry import register

_BOXED = re.compile(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}")
_STATED = re.compile(
    r"answer\s*(?:is|:)\s*:?\s*\**\s*\$?([^\n]*?)(?:[.!]?\s*$|[.!]\s|\n)", re.I | re.M
)
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:\s*/\s*\d+)?")
_LONGEST = 80
# Warns at every call that its time limit is off; see `_equal`.
logging.getLogger("math_verify").setLevel(logging.ERROR)
# Towers of powers take the parser for ever; no answer of these families needs one.
_DANGEROUS = re.compile(r"(\^|\*\*).*(\^|\*\*)|(\^|\*\*)\s*\{?\s*\d{3,}|!|\d{30,}")


@register("accuracy")
@dataclass(frozen=True)
class Accuracy:
    """1 if the final answer equals the ground truth, else 0."""

    range = (0.0, 1.0)

    async def score(self, task: Task, conversation: Conversation, context: MetricContext) -> float:
        """Compare the last turn's answer with the ground truth.

        Raises:
            MetricFailed: If the task has no ground truth that can be parsed.
        """
        positions = context.policy_turns(conversation)
        answer = final_answer(conversation.messages[positions[-1]].content) if positions else None
        return float(await asyncio.to_thread(_equal, task.ground_truth, answer))


def final_answer(text: str) -> str | None:
    """Return the answer a text ends on, or None if there is none that can be parsed."""
    boxed = _BOXED.findall(text)
    stated = [m for m in _STATED.findall(text) if _NUMBER.search(m)]
    numbers = _NUMBER.findall(text)
    if boxed:
        found = boxed[-1]
    elif stated:
        found = _NUMBER.findall(stated[-1])[-1]
    elif numbers:
        found = numbers[-1]
    else:
        return None
    found = found.strip().rstrip(".").replace(",", "")
    return None if len(found) > _LONGEST or _DANGEROUS.search(found) else found


def _equal(truth: str, answer: str | None) -> bool:
    # math-verify's own time limit needs the main thread; inputs are bounded above instead.
    gold = parse(f"${truth}$", parsing_timeout=None)
    if not gold:
        raise MetricFailed(f"the ground truth {truth!r} cannot be parsed")
    if answer is None:
        return False
    guess = parse(f"${answer}$", parsing_timeout=None)
    return bool(verify(gold, guess, timeout_seconds=None))
