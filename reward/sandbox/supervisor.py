"""Starts a run's processes, reads their events, and ends them all.

Promises: never blocks the event loop; when a run ends, is cancelled or runs out of time, no
process of it is left; an event without the run's token is not believed. Knows nothing of tests.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from reward.sandbox.report import SandboxFailed

Event = Mapping[str, Any]

_LAST = ("done", "timeout", "ended", "unavailable", "broken", "unloaded")
START_S = 30.0  # until `ready`; a machine under load takes its time
_GRACE_S = 5.0  # for the launcher to kill and bury
_MOST_BYTES = 8 * 1024 * 1024  # of all events; reading more at once would hold up the loop
_HERE = Path(__file__).parent
_BOOT = (
    "import sys; sys.path[0] = sys.argv[1]; from inside.launcher import main; "
    "sys.path.pop(0); sys.path.extend(sys.argv[3:]); main()"
)

# Sets iterate in the same order in every run: the same program gets the same score.
_ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}


def interpreter() -> str:
    """Return the Python that runs in the sandbox: this one's, outside any environment."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def library_paths() -> list[str]:
    """Return the folders of the interpreter's libraries."""
    prefixes = {os.path.realpath(path) for path in (sys.base_prefix, sys.base_exec_prefix)}
    return [f"{prefix}/{lib}" for prefix in sorted(prefixes) for lib in ("lib", "lib64")]


@asynccontextmanager
async def processes(packages: Sequence[str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start the launcher; leaving the context ends it and everything it started."""
    process = await asyncio.create_subprocess_exec(
        interpreter(),
        *("-s", "-S", "-X", "utf8", "-c", _BOOT),
        *(str(_HERE), f"sandbox of {os.getpid()}", *packages),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=_ENVIRONMENT,
        cwd="/",
        start_new_session=True,
        limit=_MOST_BYTES,
    )
    try:
        yield process
    finally:
        await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Have the launcher end its run; if it does not, all its processes die with it."""
    try:
        with suppress(ProcessLookupError):
            process.terminate()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), _GRACE_S)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()


def hand_over(process: asyncio.subprocess.Process, frames: Sequence[Mapping[str, object]]) -> None:
    """Write the job's frames and end the input."""
    assert process.stdin is not None
    for frame in frames:
        body = json.dumps(frame).encode()
        process.stdin.write(len(body).to_bytes(4, "big") + body)
    process.stdin.close()


async def events(
    process: asyncio.subprocess.Process, token: str, wall_s: float
) -> AsyncIterator[Event]:
    """Yield what a run reports, at last `timeout` or `ended` if it does not say `done`.

    Args:
        process: The launcher.
        token: What every event must carry.
        wall_s: How long it may take from `ready` on.

    Raises:
        SandboxFailed: If it does not get ready.
    """
    ready, left = False, _MOST_BYTES
    deadline = time.monotonic() + START_S
    while left > 0:
        try:
            line = await asyncio.wait_for(_line(process), deadline - time.monotonic())
            event = _event(line, token)
            left -= len(line)
        except asyncio.TimeoutError:
            event = {"event": "timeout"}
        if not ready and event["event"] in ("timeout", "ended"):
            raise SandboxFailed(f"the sandbox did not get ready: {event['event']}")
        if event["event"] == "ready":
            ready, deadline = True, time.monotonic() + wall_s
        yield event
        if event["event"] in _LAST:
            return
    yield {"event": "ended"}


async def _line(process: asyncio.subprocess.Process) -> bytes:
    assert process.stdout is not None
    try:
        return await process.stdout.readline()
    except ValueError:  # longer than all events may be
        return b""


def _event(line: bytes, token: str) -> Event:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict) or event.get("token") != token or "event" not in event:
        return {"event": "ended"}
    return event
