"""math-verify in a process of its own, because only a process can be stopped.

A formula of a dozen characters can keep sympy busy for hours, and a thread cannot be ended; the
process is killed at the time limit and started anew for the next question. It starts with the
first formula, so who compares plain numbers has none, and ends with its parent. It sees none of
the environment, because sympy's parser is no place for text of strangers.
Promises: an answer, or `TooSlow` soon after the limit. Knows nothing of what formulas are for;
this file imports nothing of the project, because it is also the script the process runs.
"""

from __future__ import annotations

import json
import logging
import math
import os
import resource
import select
import signal
import subprocess
import sys
import threading
from typing import Any

TIME_LIMIT_S = 10.0
MEMORY_LIMIT_BYTES = 2 * 1024**3
_START_LIMIT_S = 120.0  # importing sympy on a busy machine


class TooSlow(RuntimeError):
    """The comparison took longer than it may."""


class FormulaWorker:
    """Asks the process; any number of threads may, one question runs at a time."""

    def __init__(self, time_limit_s: float = TIME_LIMIT_S) -> None:
        self._time_limit_s = time_limit_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def can_parse(self, formula: str) -> bool:
        """Say whether math-verify can make anything of a formula.

        Raises:
            TooSlow: If it takes too long.
        """
        return self._ask([formula])

    def same(self, known: str, given: str) -> bool:
        """Say whether two formulas are equal to math-verify.

        Raises:
            TooSlow: If it takes too long.
        """
        return self._ask([known, given])

    def close(self) -> None:
        """End the process, if there is one; a later question starts another."""
        with self._lock:
            self._kill()

    def _ask(self, formulas: list[str]) -> bool:
        with self._lock:
            try:
                return self._exchange(formulas)
            except BrokenPipeError:  # it died between questions, of memory or by someone's hand
                self._kill()
                return self._exchange(formulas)

    def _exchange(self, formulas: list[str]) -> bool:
        if self._process is None:
            self._process = _start(self._time_limit_s)
            self._read(_START_LIMIT_S)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(formulas).encode() + b"\n")
        self._process.stdin.flush()
        return bool(json.loads(self._read(self._time_limit_s)))

    def _read(self, limit_s: float) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        poll = select.poll()
        poll.register(self._process.stdout, select.POLLIN)
        line = self._process.stdout.readline() if poll.poll(limit_s * 1000) else b""
        if not line:
            self._kill()
            raise TooSlow(f"math-verify gave no answer (it gets {limit_s:g} s)")
        return line

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def _start(time_limit_s: float) -> subprocess.Popen[bytes]:
    # Isolated: the folder of this file would else hide packages of the same names.
    return subprocess.Popen(  # noqa: S603  (a fixed command)
        [sys.executable, "-I", __file__, str(time_limit_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ},
    )


def _answer(parse: Any, verify: Any, formulas: list[str]) -> bool:
    """Return whether one formula can be parsed, or two are equal, the reference first."""
    parsed = [parse(f"${formula}$", parsing_timeout=None) for formula in formulas]
    if len(parsed) == 1:  # what cannot be parsed comes back as a text
        return any(not isinstance(form, str) for form in parsed[0])
    return bool(verify(*parsed, timeout_seconds=None))


def _serve(time_limit_s: float) -> None:
    from math_verify import parse, verify

    logging.disable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    print(json.dumps("ready"), flush=True)  # noqa: T201
    for line in sys.stdin:
        # Nobody kills it at the limit if its parent is gone by then.
        signal.alarm(math.ceil(time_limit_s) + 1)
        print(json.dumps(_answer(parse, verify, json.loads(line))), flush=True)  # noqa: T201
        signal.alarm(0)


if __name__ == "__main__":
    _serve(float(sys.argv[1]))
