"""A Ray actor that serves one copy of the policy with the embedded engine.

Promises: the calls that verl's `LLMServerClient` and `RolloutReplica` make, token in, token
out; each answer carries the training step of the weights it came from.
Knows nothing of text, chat or rewards.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import torch
from omegaconf import DictConfig
from transformers import AutoModelForCausalLM, GenerationConfig, PreTrainedTokenizerBase
from verl.utils import hf_tokenizer, normalize_token_ids
from verl.utils.fs import copy_to_local
from verl.workers.config import RolloutConfig
from verl.workers.rollout.replica import TokenOutput

from serving.async_engine import AsyncEngine
from serving.cpu_engine import CpuEngine
from serving.generation import FinishReason, SamplingParams

_STOP_REASONS = {
    FinishReason.STOP: "completed",
    FinishReason.LENGTH: "completed",
    FinishReason.ABORTED: "aborted",
}


class HFServer:
    """One engine, its weights and their version.

    Args:
        config: verl's rollout config; `dtype`, `max_model_len`, `max_num_seqs`,
            `max_num_batched_tokens` and `engine_kwargs.hf` are used.
        model_config: verl's model config.
    """

    def __init__(self, config: RolloutConfig, model_config: DictConfig) -> None:
        self._config = config
        path = copy_to_local(model_config.path, use_shm=model_config.use_shm)
        trusted = model_config.trust_remote_code
        model = AutoModelForCausalLM.from_pretrained(
            path, dtype=getattr(torch, config.dtype), trust_remote_code=trusted
        )
        engine = CpuEngine(
            model,
            max_sequences=config.max_num_seqs,
            max_length=config.max_model_len or config.prompt_length + config.response_length,
            prefill_tokens=config.max_num_batched_tokens,
            **(config.engine_kwargs.get("hf") or {}),
        )
        self._engine = AsyncEngine(engine)
        tokenizer = hf_tokenizer(path, trust_remote_code=trusted)
        self._stop_token_ids = stop_token_ids(model.generation_config, tokenizer)
        self._global_steps: int | None = None

    async def generate(
        self,
        prompt_ids: list[int],
        sampling_params: dict[str, Any],
        request_id: str | None = None,
        **unused: Any,
    ) -> TokenOutput:
        """Generate from token ids.

        Args:
            prompt_ids: The whole prompt.
            sampling_params: `temperature`, `top_p`, `top_k`, `max_tokens` (or
                `max_new_tokens`) and `seed`.

        Raises:
            ValueError: For a parameter that this engine does not have.
        """
        generation = await self._engine.generate(
            normalize_token_ids(prompt_ids),
            self._sampling_params(sampling_params),
            request_id or uuid4().hex,
        )
        return TokenOutput(
            token_ids=list(generation.token_ids),
            log_probs=list(generation.log_probs),
            stop_reason=_STOP_REASONS[generation.finish_reason],
            extra_fields={
                "global_steps": self._global_steps,
                "num_cached_tokens": generation.shared_tokens,
            },
        )

    def _sampling_params(self, given: dict[str, Any]) -> SamplingParams:
        left = dict(given)
        left.pop("logprobs", None)
        if left.pop("repetition_penalty", 1.0) != 1.0:
            raise ValueError("the hf rollout has no repetition_penalty")
        max_tokens = left.pop("max_tokens", None) or left.pop("max_new_tokens", None)
        params = SamplingParams(
            max_tokens=max_tokens or self._config.response_length,
            temperature=left.pop("temperature", 1.0),
            top_p=left.pop("top_p", 1.0),
            top_k=left.pop("top_k", -1),
            seed=left.pop("seed", None) or uuid4().int,
            stop_token_ids=frozenset() if self._config.ignore_eos else self._stop_token_ids,
        )
        if left:
            raise ValueError(f"the hf rollout has no sampling parameter {', '.join(sorted(left))}")
        return params

    async def update_weights(
        self, weights: dict[str, torch.Tensor], global_steps: int | None
    ) -> None:
        """Take new weights; from then on answers carry `global_steps`."""
        await self._engine.update_weights(weights.items())
        self._global_steps = global_steps

    async def sleep(self) -> None:
        """Give back the memory of keys and values."""
        await self._engine.release_memory()

    async def wake_up(self, tags: list[str] | None = None) -> None:
        """Nothing to do: memory is taken when it is needed."""

    async def clear_kv_cache(self) -> None:
        """Forget the prefixes of finished sequences."""
        await self._engine.clear_prefixes()

    async def release_kv_cache(self) -> None:
        """Give back the memory of keys and values."""
        await self._engine.release_memory()

    async def resume_kv_cache(self) -> None:
        """Nothing to do: memory is taken when it is needed."""

    async def abort_all_requests(self, reject_request: bool = False) -> dict[str, Any]:
        """End every request with what it has."""
        return {"aborted_count": await self._engine.abort_all()}

    async def resume_generation(self) -> None:
        """Nothing to do: an abort closes no door."""

    async def start_profile(self, **_: Any) -> None:
        """Nothing to do."""

    async def stop_profile(self, **_: Any) -> None:
        """Nothing to do."""

    async def counters(self) -> dict[str, Any]:
        """Return the engine's running totals."""
        return dict(vars(self._engine.counters))


def stop_token_ids(
    generation: GenerationConfig | None, tokenizer: PreTrainedTokenizerBase
) -> frozenset[int]:
    """Return every id that ends a turn: the generation config's and the tokenizer's."""
    listed = getattr(generation, "eos_token_id", None)
    ids = set(listed if isinstance(listed, list) else [listed])
    ids.add(tokenizer.eos_token_id)
    return frozenset(i for i in ids if i is not None)
