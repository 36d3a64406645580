"""How much a sandboxed program may use.

Promises: every limit is positive. Knows nothing of how limits are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

_MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """Limits of one run; the code and its tests have each limit for themselves.

    No process can be started, so there is no limit on processes; output goes nowhere, so
    there is none on output either.

    Attributes:
        cpu_s: CPU time in whole seconds.
        wall_s: Time from the moment the sandbox is ready, in seconds.
        memory_mb: Address space in MiB.
        tmp_mb: Files in the private /tmp, all together, in MiB.
        open_files: File descriptors.
        threads: Threads.
        rows: Rows an SQL query may return.
    """

    cpu_s: int = 5
    wall_s: float = 15.0
    memory_mb: int = 512
    tmp_mb: int = 16
    open_files: int = 64
    threads: int = 32
    rows: int = 10_000

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise ValueError(f"limit {field.name!r} must be greater than 0")

    def for_kernel(self) -> dict[str, int]:
        """Return the limits by name in bytes, seconds and counts."""
        return {
            "cpu_s": self.cpu_s,
            "memory_bytes": self.memory_mb * _MEGABYTE,
            "tmp_bytes": self.tmp_mb * _MEGABYTE,
            "open_files": self.open_files,
            "threads": self.threads,
        }
