"""Starts a run's processes, reads their events, and ends them all.

Promises: waits without blocking the event loop; when a run ends, is cancelled or runs out of time,
no process of it is left; an event without the run's token is not believed. Knows nothing of tests.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from reward.sandbox.report import SandboxFailed

Event = Mapping[str, Any]

_LAST = ("done", "timeout", "ended", "unavailable", "broken", "unloaded")
START_S = 30.0  # until `ready`; a machine under load takes its time
_GRACE_S = 5.0  # for the launcher to kill and bury
_POLL_S = 0.002  # between two looks whether it has ended
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
async def processes(
    packages: Sequence[str], frames: Sequence[Mapping[str, object]]
) -> AsyncIterator[asyncio.StreamReader]:
    """Start the launcher on a job and give what it writes; leaving the context ends all of it.

    Args:
        packages: Folders that tests and code may import from.
        frames: The job, as the launcher reads it.
    """
    loop = asyncio.get_running_loop()
    process = _launch(packages)
    assert process.stdin is not None
    assert process.stdout is not None
    output = asyncio.StreamReader(_MOST_BYTES)
    with ExitStack() as ends:
        ends.callback(process.stdout.close)
        try:
            sender, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, process.stdin)
            ends.callback(_drop, sender)
            receiver, _ = await loop.connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(output), process.stdout
            )
            ends.callback(receiver.close)
            _hand_over(sender, frames)
            yield output
        finally:
            await _end(process)


def _launch(packages: Sequence[str]) -> subprocess.Popen[bytes]:
    # Not asyncio's own subprocess: it connects the pipes in a task, and if that one is cancelled,
    # as it is when all tasks are, waiting for the process never ends (Python 3.11).
    return subprocess.Popen(  # noqa: S603
        [
            *(interpreter(), "-s", "-S", "-X", "utf8", "-c", _BOOT),
            *(str(_HERE), f"sandbox of {os.getpid()}", *packages),
        ],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_ENVIRONMENT,
        cwd="/",
        start_new_session=True,
    )


def _hand_over(sender: asyncio.WriteTransport, frames: Sequence[Mapping[str, object]]) -> None:
    """Write the job's frames and end the input."""
    for frame in frames:
        body = json.dumps(frame).encode()
        sender.write(len(body).to_bytes(4, "big") + body)
    sender.close()


def _drop(sender: asyncio.WriteTransport) -> None:
    """Close the input, whatever of it has not been read."""
    sender.close()
    if sender.get_write_buffer_size():
        sender.abort()


async def _end(process: subprocess.Popen[bytes]) -> None:
    """Have the launcher end its run; if it does not, all its processes die with it.

    Whoever is cancelled meanwhile hears of it afterwards: a launcher that is killed before it has
    buried its processes leaves them to others.
    """
    cancelled: asyncio.CancelledError | None = None
    for stop in (process.terminate, process.kill):
        stop()  # does nothing once it has ended
        deadline = time.monotonic() + _GRACE_S
        while process.poll() is None and time.monotonic() < deadline:
            try:
                await asyncio.sleep(_POLL_S)
            except asyncio.CancelledError as error:
                cancelled = error
    if cancelled is not None:
        raise cancelled


async def events(output: asyncio.StreamReader, token: str, wall_s: float) -> AsyncIterator[Event]:
    """Yield what a run reports, at last `timeout` or `ended` if it does not say `done`.

    Args:
        output: What the launcher writes.
        token: What every event must carry.
        wall_s: How long it may take from `ready` on.

    Raises:
        SandboxFailed: If it does not get ready.
    """
    ready, left = False, _MOST_BYTES
    deadline = time.monotonic() + START_S
    while left > 0:
        try:
            line = await _line_within(output, deadline - time.monotonic())
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


async def _line_within(output: asyncio.StreamReader, seconds: float) -> bytes:
    # Not `wait_for`: before Python 3.12 it forgets that it was cancelled if the line comes at the
    # same moment.
    reading = asyncio.ensure_future(_line(output))
    try:
        await asyncio.wait({reading}, timeout=max(seconds, 0))
        if seconds <= 0 or not reading.done():
            raise asyncio.TimeoutError
        return reading.result()
    finally:
        reading.cancel()


async def _line(output: asyncio.StreamReader) -> bytes:
    try:
        return await output.readline()
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
