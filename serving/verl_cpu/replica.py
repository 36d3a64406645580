"""verl's rollout replica `hf`: starts one `HFServer` actor beside its training rank.

Promises: one server a replica, on the node of its rank, found by name by `HFRollout`.
Knows nothing of weights or requests.
"""

from __future__ import annotations

import ray
from verl.workers.rollout.replica import RolloutReplica

from serving.verl_cpu.server import HFServer


def server_name(replica_rank: int) -> str:
    """Return the Ray name of a replica's server."""
    return f"hf_server_{replica_rank}"


class HFReplica(RolloutReplica):  # type: ignore[misc]  # verl ships no types
    """One engine process for one training rank."""

    async def launch_servers(self) -> None:
        """Start the server and wait until its model is loaded."""
        if self.world_size != 1:
            raise ValueError(
                "the hf rollout runs one process a replica: set "
                "actor_rollout_ref.rollout.tensor_model_parallel_size=1, data_parallel_size=1 "
                "and pipeline_model_parallel_size=1"
            )
        node_id = await self.workers[0].__ray_call__.remote(
            lambda _: ray.get_runtime_context().get_node_id()
        )
        strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            node_id=node_id, soft=False
        )
        server = (
            ray.remote(HFServer)
            .options(
                name=server_name(self.replica_rank),
                scheduling_strategy=strategy,
                max_concurrency=self.max_concurrency,
            )
            .remote(self.config, self.model_config)
        )
        await server.counters.remote()
        self.servers = [server]
        self._server_handle = server
        self._server_address = server_name(self.replica_rank)
