"""Starts the processes of one run, locks them in, and ends them all with itself.

The code under test is forked before the tests and the token are read, so neither was ever in its
memory. Promises: nothing untrusted runs before the required layers hold and `ready` was reported;
if they do not, `unavailable` names the missing ones. Knows nothing of asyncio.

What comes in on standard input: three frames of JSON, each with its length in front (settings,
code, tests). What goes out on standard output: a line of JSON an event.
"""

from __future__ import annotations

import json
import os
import signal

from . import code_process, jail, kernel, test_process
from .remote import Remote
from .wire import Channel, Closed, Malformed, read_exactly

_VERDICT = 200  # above what the roles open


def main() -> None:
    """Run one job, then end every process of it."""
    _prepare()
    nothing = os.open("/dev/null", os.O_RDWR)
    os.dup2(1, _VERDICT)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    wardens: list[int] = []
    try:
        settings = read_frame()
        _start(settings, nothing, wardens)
        os.waitpid(wardens[-1], 0)
    finally:
        _end(wardens)
        os._exit(0)  # nothing is left to do, and Python takes milliseconds to notice


def _prepare() -> None:
    kernel.prctl(kernel.PR_SET_PDEATHSIG, int(signal.SIGKILL))
    # What loses its parent becomes ours, so that nobody else has to bury it.
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, _stop)


def _stop(number: int, frame: object) -> None:
    raise SystemExit


def _end(wardens: list[int]) -> None:
    """Kill all processes of the run and wait until each is gone."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for warden in wardens:
        try:
            os.killpg(warden, signal.SIGKILL)
        except ProcessLookupError:
            continue
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def read_frame() -> dict[str, object]:
    """Read one frame from standard input, and nothing of the next."""
    size = int.from_bytes(read_exactly(0, 4), "big")
    frame = json.loads(read_exactly(0, size))
    if not isinstance(frame, dict):
        raise Malformed("a frame must be an object")
    return frame


def _start(settings: dict[str, object], nothing: int, wardens: list[int]) -> None:
    if settings["role"] == "tests":
        _start_tests(settings, nothing, wardens)
    else:
        _start_query(settings, nothing, wardens)


def _start_tests(settings: dict[str, object], nothing: int, wardens: list[int]) -> None:
    requests, answers = os.pipe(), os.pipe()
    code = read_frame()

    def serve(layers: list[str]) -> None:
        channel = Channel(requests[0], answers[1])
        missing = _missing(settings, layers)
        channel.send({"layers": layers, "missing": missing})
        if not missing:
            code_process.serve(channel, str(code["prefix"]), str(code["program"]))

    def test(layers: list[str]) -> None:
        channel = Channel(answers[0], requests[1])
        job = _handed_over(nothing)
        report = _reporter(str(job.pop("token")))
        if _is_ready(settings, layers, report, channel):
            texts = {key: None if value is None else str(value) for key, value in job.items()}
            test_process.run(Remote(channel), report, texts)
            report(event="done")

    held = os.dup(0)
    os.dup2(nothing, 0)
    _fork(settings, [requests[0], answers[1]], serve, wardens)
    os.close(requests[0])
    os.close(answers[1])
    os.dup2(held, 0)
    kept = [answers[0], requests[1], _VERDICT, nothing]
    _fork(settings, kept, test, wardens)


def _start_query(settings: dict[str, object], nothing: int, wardens: list[int]) -> None:
    from . import query_process  # SQLite only where it is needed

    def query(layers: list[str]) -> None:
        job = _handed_over(nothing)
        report = _reporter(str(job.pop("token")))
        if _is_ready(settings, layers, report, None):
            report(event="done", **query_process.run_query(job))

    _fork(settings, [_VERDICT, nothing], query, wardens)


def _fork(
    settings: dict[str, object], kept: list[int], body: jail.Body, wardens: list[int]
) -> None:
    """Start a warden; being told to end waits until the warden is known, or it would be missed."""

    def unblocked(layers: list[str]) -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        body(layers)

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    wardens.append(jail.fork_jailed(settings, kept, unblocked))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _handed_over(nothing: int) -> dict[str, object]:
    job = read_frame()
    os.dup2(nothing, 0)
    os.close(nothing)
    return job


def _is_ready(
    settings: dict[str, object],
    layers: list[str],
    report: test_process.Report,
    code: Channel | None,
) -> bool:
    missing = _missing(settings, layers)
    if code is not None:
        try:
            message = code.receive()
        except (Closed, Malformed) as error:
            report(event="unavailable", missing=[f"the process of the code: {error}"])
            return False
        theirs = message if isinstance(message, dict) else {}
        missing = missing or theirs["missing"]
        layers = [layer for layer in layers if layer in theirs["layers"]]
    report(event="unavailable" if missing else "ready", missing=missing, layers=layers)
    return not missing


def _missing(settings: dict[str, object], layers: list[str]) -> list[str]:
    """Return the needs that no layer meets: each need is a list of layers, one of which will do."""
    needs = settings["needs"]
    if not isinstance(needs, dict):
        raise Malformed("needs must be an object")
    return [need for need, any_of in needs.items() if not set(any_of) & set(layers)]


def _reporter(token: str) -> test_process.Report:
    def report(**event: object) -> None:
        line = json.dumps({"token": token, **event}) + "\n"
        view = memoryview(line.encode())
        while view:
            view = view[os.write(_VERDICT, view) :]

    return report
