"""A few programs that show whether the sandbox holds on this machine.

Promises: runs nothing harmful, even where nothing holds. Knows nothing of layers.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace

from reward.sandbox.sandbox import Sandbox

_TESTS = "assert add(2, 3) == 5"
_HONEST = "def add(a, b):\n    return a + b\n"
# Each gives the right sum only if what its name says was possible.
_REFUSED = {
    "patch the tests": "import builtins\nbuiltins.AssertionError = Exception\nadd = print\n",
    "lie about equality": "class Any:\n    __eq__ = lambda *_: True\ndef add(a, b): return Any()\n",
    "open a socket": "import socket\ndef add(a, b): return socket.socket() and a + b\n",
    "start a process": "import os\ndef add(a, b): return os.fork() or a + b\n",
    "signal its parent": "import os\ndef add(a, b): return os.kill(os.getppid(), 0) or a + b\n",
    "read an account list": "def add(a, b): return open('/etc/passwd') and a + b\n",
    "write to /var/tmp": (
        "import tempfile\ndef add(a, b): return tempfile.TemporaryFile(dir='/var/tmp') and a + b\n"
    ),
    "allocate without end": "def add(a, b): return len(bytearray(10**12)) and a + b\n",
    "run for ever": "def add(a, b):\n    while True: pass\n",
}


@dataclass(frozen=True)
class Check:
    """One thing that was tried.

    Attributes:
        name: What.
        held: Whether the sandbox did what it should.
        elapsed_ms: How long it took.
    """

    name: str
    held: bool
    elapsed_ms: float


async def self_check(sandbox: Sandbox) -> list[Check]:
    """Run the programs, one after the other, an honest one first.

    Raises:
        SandboxUnavailable, SandboxFailed: If none can be run.
    """
    quick = replace(sandbox, limits=replace(sandbox.limits, cpu_s=1, wall_s=5.0))
    programs = {"run an honest program": _HONEST, **_REFUSED}
    return [await _try(quick, name, program) for name, program in programs.items()]


async def _try(sandbox: Sandbox, name: str, program: str) -> Check:
    started = time.monotonic()
    report = await sandbox.run_tests(program, _TESTS, "add")
    held = report.passed == (1 if program is _HONEST else 0)
    return Check(name, held, (time.monotonic() - started) * 1000)


async def milliseconds_a_run(sandbox: Sandbox, runs: int = 10) -> float:
    """Return the mean time of a run of an honest program, one after the other."""
    started = time.monotonic()
    for _ in range(runs):
        await sandbox.run_tests(_HONEST, _TESTS, "add")
    return (time.monotonic() - started) * 1000 / runs


def run_self_check() -> tuple[list[Check], float]:
    """Run the self-check with the defaults; return its checks and milliseconds a run."""

    async def both() -> tuple[list[Check], float]:
        sandbox = Sandbox()
        return await self_check(sandbox), await milliseconds_a_run(sandbox)

    return asyncio.run(both())
