"""`reward_model`: the number a trained reward model gives the conversation.

Any sequence classifier: of this process (`path`) or behind a server (`endpoint`). It sees what
the user saw up to the policy's last turn. Its number is unbounded as a rule, and R* needs bounds:
`squash: sigmoid` maps it into `low`..`high`, `none` takes it as it is and fails outside of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from interaction.conversation import Conversation
from interaction.task import Task
from reward.metric import MetricContext, MetricFailed
from reward.registry import register
from reward.scorers.local import LocalScorer
from reward.scorers.scorer import Scorer, ScorerFailed, shown
from reward.scorers.served import Api, ServedScorer

Squash = Literal["sigmoid", "none"]


@register("reward_model")
@dataclass(frozen=True)
class RewardModel:
    """A reward model's number, brought into bounds.

    Attributes:
        path: Folder or hub name of a model to load in this process; or
        endpoint: settings of a server, as everywhere (base_url, model, api_key_env, ...).
        api: Whose routes the server has, "vllm" or "sglang".
        tokenizer: Folder or hub name of the served model's tokenizer; SGLang needs it.
        device: Of a model in this process, as torch names it.
        label: Which output is the number, from 0.
        low, high: Bounds of the score.
        squash: "sigmoid": low + (high - low) / (1 + exp(-number)). "none": the number itself.
    """

    path: str | None = None
    endpoint: Mapping[str, Any] | None = None
    api: Api = "vllm"
    tokenizer: str | None = None
    device: str = "cpu"
    label: int = 0
    low: float = 0.0
    high: float = 1.0
    squash: Squash = "sigmoid"

    def __post_init__(self) -> None:
        if (self.path is None) == (self.endpoint is None):
            raise ValueError("metric 'reward_model': give one of path and endpoint")
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(
                f"metric 'reward_model': low must be below high, got {self.low} and {self.high}"
            )
        if self.squash not in get_args(Squash):
            choices = " or ".join(get_args(Squash))
            raise ValueError(
                f"metric 'reward_model': squash must be {choices}, got {self.squash!r}"
            )
        _ = self._scorer  # its settings are checked before a run begins

    @property
    def range(self) -> tuple[float, float]:
        """The bounds that were set."""
        return (self.low, self.high)

    async def score(self, task: Task, conversation: Conversation, context: MetricContext) -> float:
        """Return the model's number within the bounds.

        Raises:
            MetricFailed: If there is no policy turn, or no number within the bounds.
        """
        positions = context.policy_turns(conversation)
        if not positions:
            raise MetricFailed("the conversation has no policy turn")
        try:
            number = await self._scorer.number(shown(conversation, positions[-1]))
        except ScorerFailed as error:
            raise MetricFailed(str(error)) from error
        score = self._within(number)
        if not self.low <= score <= self.high:
            raise MetricFailed(
                f"the reward model gave {score:g}, which is not within {self.low:g}.."
                f"{self.high:g}; set low and high, or squash: sigmoid"
            )
        return score

    def _within(self, number: float) -> float:
        if self.squash == "none":
            return number
        share = 0.5 * (1 + math.tanh(number / 2))  # the sigmoid, without its overflow
        return min(max(self.low + (self.high - self.low) * share, self.low), self.high)

    @cached_property
    def _scorer(self) -> Scorer:
        if self.endpoint is not None:
            return ServedScorer(self.endpoint, self.api, self.label, self.tokenizer)
        assert self.path is not None
        return LocalScorer(self.path, self.label, self.device)
