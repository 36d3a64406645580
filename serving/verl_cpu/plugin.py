"""The entry point `verl.plugins`: verl imports this module in every process.

Promises: does nothing unless `VERL_PLATFORM=cpu`; a failure is printed, because verl only
logs it at DEBUG (verl/__init__.py:87), and raised again.
Knows nothing of recipes.
"""

from __future__ import annotations

import os
import sys
import traceback


def register() -> None:
    """Register the CPU platform and the rollout backend `hf`; make gloo the only backend."""
    import verl.utils.distributed as distributed
    from verl.workers.rollout.base import _ROLLOUT_REGISTRY
    from verl.workers.rollout.replica import RolloutReplicaRegistry

    # verl joins "cpu:gloo,{device}:{backend}" (utils/distributed.py:63, 89), and torch refuses
    # "cpu" twice. A device of another name leaves "cpu:gloo", which is all that is used here.
    distributed.get_device_name = lambda: "cuda"
    # verl/workers/rollout/base.py:89 has no register call for rollout adapters.
    _ROLLOUT_REGISTRY["hf", "async"] = "serving.verl_cpu.rollout.HFRollout"
    RolloutReplicaRegistry.register("hf", _load_replica)


def _load_replica() -> type:
    from serving.verl_cpu.replica import HFReplica

    return HFReplica


if os.environ.get("VERL_PLATFORM", "").strip().lower() == "cpu":
    try:
        import serving.verl_cpu.platform  # noqa: F401  (registers itself)

        register()
    except Exception:
        sys.stderr.write("collabllm: the verl CPU plug-in failed to load:\n")
        traceback.print_exc()
        raise
