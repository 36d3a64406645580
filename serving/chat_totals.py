"""What the calls to a chat endpoint cost: of one question, and of a role since the start.

Promises: failed calls count too; a cost is told only where prices are known.
Knows nothing of why a call was made.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from serving.chat_endpoint import ChatEndpoint


@dataclass
class Usage:
    """What one question has used so far; its names are those of `ChatAnswer.usage`."""

    calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0  # in flight; waiting for a slot or a next try is not counted
    useless: int = 0  # answers empty or cut off; no part of what is told

    def count(self, response: Any) -> None:
        """Add the tokens an endpoint tells of; some tell of none."""
        usage = getattr(response, "usage", None)
        details = getattr(usage, "prompt_tokens_details", None)
        self.prompt_tokens += getattr(usage, "prompt_tokens", None) or 0
        self.completion_tokens += getattr(usage, "completion_tokens", None) or 0
        self.cached_tokens += getattr(details, "cached_tokens", None) or 0

    def by_name(self, endpoint: ChatEndpoint) -> dict[str, float]:
        """Return the numbers, with the cost where prices are known."""
        numbers = {name: float(value) for name, value in vars(self).items() if name != "useless"}
        cost = endpoint.cost(self.prompt_tokens, self.completion_tokens)
        return numbers if cost is None else numbers | {"cost": cost}


@dataclass
class ChatTotals:
    """Running totals of one role in one process.

    Attributes:
        role: Who is played.
        answers: Questions that got an answer, from the cache or not.
        cache_hits: Those that were kept.
        failures: Calls that gave nothing, by kind; `unreadable` are answers, not calls.
        used: Sums of `ChatAnswer.usage`, failed questions included.
    """

    role: str
    answers: int = 0
    cache_hits: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    used: Counter[str] = field(default_factory=Counter)

    @property
    def calls(self) -> int:
        """Calls that were sent, failed ones included."""
        return int(self.used["calls"])

    def add(self, usage: dict[str, float]) -> None:
        """Add what one question has used."""
        for name, value in usage.items():
            self.used[name] += value  # type: ignore[assignment]  # a Counter adds floats as well

    def metrics(self) -> dict[str, float]:
        """Return the totals by name, for a log: `user/calls`, `user/failed/timeout`, ..."""
        numbers = {"answers": self.answers, "cache_hits": self.cache_hits, **self.used}
        numbers |= {f"failed/{kind}": count for kind, count in self.failures.items()}
        return {f"{self.role}/{name}": float(value) for name, value in numbers.items()}
