"""verl's platform `cpu`: what verl asks of an accelerator, answered for a CPU.

Promises: no call touches a GPU; device ids are the device "cpu"; memory, profiler and IPC
calls do nothing. Ray counts logical GPUs, one a training rank (verl reads no other resource).
Knows nothing of models.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import psutil
import torch
from verl.plugin.platform import PlatformBase, PlatformRegistry


class _CpuDevice(ModuleType):
    """`torch.cpu` plus the calls that verl makes on `torch.cuda` unasked."""

    def __getattr__(self, name: str) -> Any:
        if hasattr(torch.cpu, name):
            return getattr(torch.cpu, name)
        if name in ("get_rng_state", "set_rng_state"):
            return getattr(torch, name)
        if name == "mem_get_info":
            memory = psutil.virtual_memory()
            return lambda *_: (memory.available, memory.total)
        if name == "get_device_name":
            return lambda *_: "CPU"  # utils/flops_counter.py: the name of no known peak
        if name in _ZERO:
            return lambda *_, **__: 0
        if name in _NOTHING:
            return lambda *_, **__: None
        raise AttributeError(f"the CPU has no torch device call {name!r}")


_ZERO = {
    "memory_allocated",
    "memory_reserved",
    "max_memory_allocated",
    "max_memory_reserved",
}
_NOTHING = {
    "empty_cache",
    "ipc_collect",
    "manual_seed",
    "manual_seed_all",
    "reset_peak_memory_stats",
    "set_device",
}


@PlatformRegistry.register(platform="cpu")
class PlatformCPU(PlatformBase):  # type: ignore[misc]  # verl ships no types
    """A CPU as verl sees an accelerator."""

    @property
    def device_name(self) -> str:
        return "cpu"

    @property
    def vendor_name(self) -> str:
        return "cpu"

    @property
    def device_module(self) -> ModuleType:
        return _CpuDevice("torch.cpu")

    def is_available(self) -> bool:
        return True

    def is_platform_available(self, use_smi_check: bool = False) -> bool:
        # Chosen by VERL_PLATFORM only: auto-detection must never prefer a CPU to a GPU.
        return False

    def current_device(self) -> str:
        # verl moves tensors with .to(get_device_id()); the integer 0 would mean cuda:0.
        return "cpu"

    def device_count(self) -> int:
        return 1

    def set_device(self, device_index: int) -> None: ...

    def synchronize(self, device_index: int | None = None) -> None: ...

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None: ...

    def empty_cache(self) -> None: ...

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CUDA_VISIBLE_DEVICES"

    @contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        yield

    def profiler_start(self) -> None: ...

    def profiler_stop(self) -> None: ...

    def ray_resource_name(self) -> str:
        # single_controller/ray/base.py:230 counts GPU and NPU only; Ray takes logical GPUs.
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        return []

    def is_ipc_supported(self) -> bool:
        return False

    def cudart(self) -> None:
        return None
