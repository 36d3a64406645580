"""Environment variables of a run's processes, which all inherit them from the first.

Promises: nothing that the caller has set is overridden; on a GPU only where logs go is set.
Knows nothing of how the processes are started.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from omegaconf import DictConfig

from recipe.collabllm.hardware import usable_cores
from recipe.collabllm.run_folder import RunFolder


def find_modules_here() -> None:
    """Let this process, and those it starts, import modules from the folder it runs in.

    So that a user or metric of one's own can be named without installing it. The folder comes
    last, so that nothing in it takes the place of an installed module in this process.
    """
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if here not in known:
        os.environ["PYTHONPATH"] = os.pathsep.join([*filter(None, known), here])


def process_environment(config: DictConfig, run: RunFolder, step: int) -> dict[str, str]:
    """Return the variables to set.

    Args:
        step: The step the run begins from; verl's file logger starts a new file each time.
    """
    logs = run.path / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    wanted = {
        "VERL_FILE_LOGGER_PATH": str(logs / f"metrics_from_step_{step:06d}.jsonl"),
        "TENSORBOARD_DIR": str(logs / "tensorboard"),
    }
    if config.trainer.device == "cpu":
        wanted |= _cpu_environment(config.trainer.n_gpus_per_node)
    return {name: value for name, value in wanted.items() if name not in os.environ}


def _cpu_environment(ranks: int) -> dict[str, str]:
    return {
        "OMP_NUM_THREADS": str(max(1, usable_cores() // ranks)),
        # glibc gives large tensors back to the kernel and faults them in again at every use.
        # Keeping them, in huge pages, made a training step about 1.7 times faster
        # (benchmarks/allocator.py). Other systems ignore these.
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(16 << 30),
        "MALLOC_ARENA_MAX": "1",
        # Ray's usage statistics would leave the machine.
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DEDUP_LOGS": "1",
    }
