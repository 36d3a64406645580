"""verl's FSDP2 training engines, registered for the device `cpu`.

Promises: the same engines as on a GPU; only the reference model's offload differs, for pinned
memory needs an accelerator. Loaded through `model.external_lib`, which verl imports before it
looks an engine up (workers/config/model.py:149).
Knows nothing of rollouts.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import torch
from verl.workers.engine.base import EngineRegistry
from verl.workers.engine.fsdp import transformer_impl


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


@EngineRegistry.register(model_type="value_model", backend="fsdp2", device="cpu")
class CpuEngineWithValueHead(_OnCpu, transformer_impl.FSDPEngineWithValueHead):  # type: ignore[misc]
    """Critic."""
