"""What a generation request asks for and what comes back.

Promises: plain frozen values, checked on construction; sequences are token ids.
Knows nothing of text, tokenizers, models or transports.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class FinishReason(str, Enum):
    """Why a generation ended."""

    STOP = "stop"  # a stop token was generated (it is the last of `token_ids`)
    LENGTH = "length"  # the token budget or the model's context ran out
    ABORTED = "aborted"  # cancelled by the caller; `token_ids` holds what was there


@dataclass(frozen=True)
class SamplingParams:
    """How one request is sampled.

    Attributes:
        max_tokens: Most tokens to generate, at least 1.
        temperature: 0 is greedy; log-probabilities are those of the tempered distribution.
        top_p: Nucleus mass in (0, 1]; 1 keeps everything.
        top_k: Keep the k likeliest tokens; -1 or 0 keeps everything.
        seed: Same seed and same logits give the same tokens, whatever else is in flight.
        stop_token_ids: Generation ends after one of these.

    Raises:
        ValueError: If a value is out of range.
    """

    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    seed: int = 0
    stop_token_ids: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, got {self.max_tokens}")
        if not self.temperature >= 0:
            raise ValueError(f"temperature must not be negative, got {self.temperature}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be in (0, 1], got {self.top_p}")
        if self.top_k < -1:
            raise ValueError(f"top_k must be -1, 0 or positive, got {self.top_k}")


@dataclass(frozen=True)
class Generation:
    """What a request produced.

    Attributes:
        token_ids: Generated ids, the stop token included.
        log_probs: One natural-log probability per generated id.
        finish_reason: Why it ended.
        prefilled_tokens: Prompt tokens that were computed for this request.
        shared_tokens: Prompt tokens whose keys and values came from another sequence.
    """

    token_ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    finish_reason: FinishReason
    prefilled_tokens: int
    shared_tokens: int


@dataclass
class EngineCounters:
    """Running totals of an engine, for benchmarks and tests."""

    prefilled_tokens: int = 0
    shared_tokens: int = 0
    decoded_tokens: int = 0
    forward_passes: int = 0
    weight_updates: int = 0
    finished: dict[FinishReason, int] = field(
        default_factory=lambda: dict.fromkeys(FinishReason, 0)
    )
