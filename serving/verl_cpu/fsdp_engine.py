"""verl's FSDP2 training engines, registered for the device `cpu`.

Promises: the same engines as on a GPU, with two differences: the reference model is not offloaded
to pinned memory, which needs an accelerator; and sequences that share a prompt are computed with
the prompt read once, where that is possible (shared_prompt.py). Loaded through
`model.external_lib`, which verl imports before it looks an engine up (workers/config/model.py:149).
Knows nothing of rollouts.
"""

from __future__ import annotations

import inspect
from typing import Any
from unittest.mock import patch

import torch
from tensordict import TensorDict
from verl.utils import tensordict_utils as tu
from verl.utils.torch_functional import entropy_from_logits, logprobs_from_logits
from verl.workers.engine.base import EngineRegistry
from verl.workers.engine.fsdp import transformer_impl

from serving.verl_cpu.shared_prompt import SharedPromptBatch, lay_out

_NOT_SHARED = (
    "use_remove_padding",
    "use_fused_kernels",
    "distillation_use_topk",
    "distillation_only",
)


class _Unpinned(torch.distributed.fsdp.CPUOffloadPolicy):
    """Offloading to where the parameters already are."""

    def __init__(self, pin_memory: bool = False) -> None:
        super().__init__(pin_memory=False)


class _OnCpu:
    """What both engines do otherwise on a CPU."""

    def _build_fsdp_module(self, module: torch.nn.Module) -> Any:
        # workers/engine/fsdp/transformer_impl.py:462 pins the reference model's memory.
        with patch.object(transformer_impl, "CPUOffloadPolicy", _Unpinned):
            return super()._build_fsdp_module(module)  # type: ignore[misc]


# transformer_impl.py:1143 and 1594 register for cuda and npu only.
@EngineRegistry.register(model_type="language_model", backend="fsdp2", device="cpu")
class CpuEngineWithLMHead(_OnCpu, transformer_impl.FSDPEngineWithLMHead):  # type: ignore[misc]
    """Actor and reference model."""

    def prepare_model_inputs(
        self, micro_batch: TensorDict
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Lay the batch out by prompt, or as verl does where that cannot be."""
        if not self._can_share_prompts(micro_batch):
            inputs, args = super().prepare_model_inputs(micro_batch)
            return inputs, args
        lengths = micro_batch["response_mask"].offsets().diff().tolist()
        sequences = micro_batch["input_ids"].unbind()
        batch = lay_out(
            [ids[:-length] for ids, length in zip(sequences, lengths, strict=True)],
            [ids[-length:] for ids, length in zip(sequences, lengths, strict=True)],
            pad=tu.get_non_tensor_data(micro_batch, key="pad_token_id", default=0),
        )
        mask = torch.zeros(batch.hidden.shape).masked_fill_(batch.hidden, -torch.inf)
        inputs = {
            "input_ids": batch.input_ids,
            "position_ids": batch.position_ids,
            "attention_mask": mask[:, None].to(self._autocast_dtype),
            "logits_to_keep": batch.kept_columns,
        }
        return inputs, {"shared_prompt": batch}

    def prepare_model_outputs(
        self,
        output: Any,
        output_args: dict[str, Any],
        micro_batch: TensorDict,
        logits_processor_func: Any,
    ) -> dict[str, torch.Tensor]:
        """Return log-probabilities (and entropies) as nested as the sequences."""
        batch: SharedPromptBatch | None = output_args.get("shared_prompt")
        if batch is None:
            own: dict[str, torch.Tensor] = super().prepare_model_outputs(
                output, output_args, micro_batch, logits_processor_func
            )
            return own
        logits = output.logits.flatten(0, 1)[batch.predictors]
        temperature = micro_batch["temperature"]
        if temperature != 1:
            logits = logits / temperature
        told = {"log_probs": logprobs_from_logits(logits, batch.labels)}
        if tu.get_non_tensor_data(micro_batch, key="calculate_entropy", default=False):
            told["entropy"] = entropy_from_logits(logits)
        return {name: _spread(values, micro_batch) for name, values in told.items()}

    def _can_share_prompts(self, micro_batch: TensorDict) -> bool:
        if any(tu.get_non_tensor_data(micro_batch, key=k, default=False) for k in _NOT_SHARED):
            return False
        return (
            "response_mask" in micro_batch
            and not isinstance(micro_batch["temperature"], torch.Tensor)
            and micro_batch["position_ids"].dim() == 2
            and not transformer_impl.extract_multi_modal_inputs(
                micro_batch.get("multi_modal_inputs", [])
            )
            and "logits_to_keep" in inspect.signature(self.module.forward).parameters
        )


@EngineRegistry.register(model_type="value_model", backend="fsdp2", device="cpu")
class CpuEngineWithValueHead(_OnCpu, transformer_impl.FSDPEngineWithValueHead):  # type: ignore[misc]
    """Critic."""


def _spread(values: torch.Tensor, micro_batch: TensorDict) -> torch.Tensor:
    """Return reply values, flat, at the places where verl looks for them.

    verl reads the value for a sequence's token t at t - 1 (labels are rolled by one), and reads
    replies only, so the prompt's places hold zeros.
    """
    offsets = micro_batch["input_ids"].offsets()
    lengths = micro_batch["response_mask"].offsets().diff()
    places = [
        torch.arange(end - length - 1, end - 1)
        for end, length in zip(offsets[1:].tolist(), lengths.tolist(), strict=True)
    ]
    flat = values.new_zeros(int(offsets[-1])).index_put((torch.cat(places),), values)
    return torch.nested.nested_tensor_from_jagged(flat, offsets)
