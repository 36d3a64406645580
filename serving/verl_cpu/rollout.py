"""verl's rollout adapter `hf`: lives in a training rank and feeds weights to its server.

Promises: each update hands over a whole, named set of tensors in the rollout's dtype.
Knows nothing of requests.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import ray
import torch
from torch.distributed.device_mesh import DeviceMesh
from verl.workers.config import HFModelConfig, RolloutConfig
from verl.workers.rollout.base import BaseRollout

from serving.verl_cpu.replica import server_name


class HFRollout(BaseRollout):  # type: ignore[misc]  # verl ships no types
    """The training side of one replica."""

    def __init__(
        self,
        config: RolloutConfig,
        model_config: HFModelConfig,
        device_mesh: DeviceMesh,
        replica_rank: int = -1,
    ) -> None:
        super().__init__(config, model_config, device_mesh)
        self._replica_rank = int(os.environ["RANK"]) if replica_rank == -1 else replica_rank
        self._dtype = getattr(torch, self.config.dtype)

    @property
    def _server(self) -> Any:
        # Looked up late: the server starts after the training ranks.
        return ray.get_actor(server_name(self._replica_rank))

    async def resume(self, tags: list[str]) -> None:
        """Tell the server to take its memory."""
        await self._server.wake_up.remote(tags=tags)

    async def release(self) -> None:
        """Tell the server to give its memory back."""
        await self._server.sleep.remote()

    @torch.no_grad()
    async def update_weights(
        self,
        weights: Generator[tuple[str, torch.Tensor], None, None],
        wire_format: str = "named_tensors",
        global_steps: int | None = None,
        **_: Any,
    ) -> None:
        """Send every weight to the server.

        Raises:
            ValueError: If the weights come as differences.
        """
        if wire_format != "named_tensors":
            raise ValueError(f"the hf rollout takes whole tensors, not {wire_format}")
        whole = {name: tensor.to(self._dtype) for name, tensor in weights}
        await self._server.update_weights.remote(whole, global_steps)
