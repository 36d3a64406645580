"""What this machine is: GPUs, the CPU's number formats, cores, memory, disk.

Promises: only looks. Knows nothing of configurations.
"""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

import psutil

GIB = 1 << 30


def gpu_count() -> int:
    """Return how many CUDA devices can be used."""
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def multiplies_bfloat16() -> bool:
    """Return whether the CPU has instructions for bfloat16 products; without, it is slow."""
    if platform.system() != "Linux":
        return False
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return any(flag in flags for flag in ("amx_bf16", "avx512_bf16", "asimdbf16", " bf16"))


def usable_cores() -> int:
    """Return how many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_memory() -> int:
    """Return the bytes of memory that can be had without swapping."""
    return int(psutil.virtual_memory().available)


def free_disk(folder: str | Path) -> int:
    """Return the bytes free where `folder` is or will be."""
    path = Path(folder).absolute()
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free
