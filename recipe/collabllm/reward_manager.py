"""verl's reward manager for CollabLLM: one reply in, its multiturn-aware reward out.

verl calls it as soon as a reply's agent loop ends, in reward workers of their own, so scoring
runs while other replies still roll out.

Promises: the score of a reply that is left out is NaN, so that whoever forgets to leave it out
cannot overlook it (sampler.py leaves it out). Knows nothing of how scores are made (scoring.py).
"""

from __future__ import annotations

import math
from typing import Any

from omegaconf import DictConfig, OmegaConf
from transformers import PreTrainedTokenizerBase
from verl import DataProto
from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase

from recipe.collabllm.agent_loop import record_of
from recipe.collabllm.record import reward_numbers
from recipe.collabllm.scoring import ReplyScorer
from recipe.collabllm.settings import read_settings
from serving.chat_tokens import ChatTokens


class CollabLLMRewardManager(RewardManagerBase):  # type: ignore[misc]  # verl ships no types
    """Scores the replies that `CollabLLMAgentLoop` played."""

    def __init__(
        self,
        config: DictConfig,
        tokenizer: PreTrainedTokenizerBase,
        compute_score: Any = None,
        **_: Any,
    ) -> None:
        super().__init__(config, tokenizer, compute_score)
        settings = read_settings(OmegaConf.to_container(config.collabllm, resolve=True))
        self._metric_names = list(settings.metrics)
        self._scorer = ReplyScorer(settings, ChatTokens(tokenizer).count)

    async def run_single(self, data: DataProto) -> dict[str, Any]:
        """Return the reply's reward and its scored record."""
        task, record = record_of(data[-1].non_tensor_batch["tool_extra_fields"])
        record = await self._scorer.score(task, record)
        return {
            "reward_score": math.nan if record.mr is None else record.mr,
            "reward_extra_info": {
                **reward_numbers(record, self._metric_names),
                "record": record.to_json(),
            },
        }
