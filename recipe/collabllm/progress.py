"""What a person sees while verl trains: one line a step, the rest in a log file.

verl, Ray and their workers write hundreds of lines a minute. They go to `logs/train.log`; what
is shown is read from verl's own metrics file as it grows.

Promises: the terminal is given back whatever happens. Knows nothing of how training works.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from reward.multiturn_reward import saturation_warnings

_POLL_SECONDS = 0.5
_RECENT_STEPS = 8


@contextmanager
def quiet_output(log: Path) -> Iterator[Callable[[str], None]]:
    """Send this process's output, and that of those it starts, to a file.

    Yields:
        What still writes to the terminal, a line at a time.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    shown, hidden = os.dup(1), os.dup(2)
    try:
        with log.open("ab") as target, os.fdopen(os.dup(shown), "w", buffering=1) as terminal:
            os.dup2(target.fileno(), 1)
            os.dup2(target.fileno(), 2)
            yield lambda text: print(text, file=terminal)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(shown, 1)
        os.dup2(hidden, 2)
        os.close(shown)
        os.close(hidden)


@contextmanager
def followed(metrics: Path, total: int, tell: Callable[[str], None]) -> Iterator[None]:
    """Tell what a growing metrics file says, until the block ends.

    Args:
        metrics: verl's file, one JSON object a step; it may not exist yet.
        total: Steps of the whole run, for the time left.
    """
    ended = threading.Event()
    thread = threading.Thread(target=_follow, args=(metrics, total, tell, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _follow(metrics: Path, total: int, tell: Callable[[str], None], ended: threading.Event) -> None:
    read = 0
    seen = Seen()
    while True:
        last_round = ended.wait(_POLL_SECONDS)
        lines = metrics.read_bytes()[read:].splitlines(keepends=True) if metrics.exists() else []
        for line in lines:
            if not line.endswith(b"\n"):  # still being written
                break
            read += len(line)
            entry = json.loads(line)
            for text in describe(entry["step"], total, entry["data"], seen):
                tell(text)
        if last_round:
            return


@dataclass
class Seen:
    """What earlier steps told: recent step times, and the metrics that were warned of."""

    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT_STEPS))
    warned: set[str] = field(default_factory=set)


def describe(step: int, total: int, data: Mapping[str, float], seen: Seen) -> Iterator[str]:
    """Yield the lines for one entry of verl's metrics; keeps in `seen` what later ones need."""
    if "reward/mr/mean" in data:
        seen.seconds.append(data.get("timing_s/step", 0.0))
        yield _step_line(step, total, data, statistics.median(seen.seconds))
    found = ((re.fullmatch(r"reward/(.+)/at_cap", key), share) for key, share in data.items())
    shares = {match[1]: share for match, share in found if match}
    for name, warning in saturation_warnings(shares).items():
        if name not in seen.warned:
            yield f"  warning: {warning}"
        seen.warned.add(name)
    for source, reward in validation_rewards(data).items():
        yield f"  held-out {source:<16} at step {step:>3}   MR {reward:+.2f}"


def validation_rewards(data: Mapping[str, float]) -> dict[str, float]:
    """Return the mean reward of each validation source among verl's metrics."""
    found = {}
    for key, value in data.items():
        parts = key.split("/")
        if parts[0] == "val-core" and parts[2] == "reward" and parts[3].startswith("mean@"):
            found[parts[1]] = value
    return found


def _step_line(step: int, total: int, data: Mapping[str, float], pace: float) -> str:
    usable = 1 - data.get("reward/floored_replies", 0.0)
    minutes = (total - step) * pace / 60
    left = f"about {minutes:.0f} min left" if step < total else "done"
    return (
        f"step {step:>3}/{total}   MR {data['reward/mr/mean']:+.2f}   "
        f"asks {data['reward/ask_rate']:4.0%}   usable {usable:4.0%}   "
        f"{data.get('timing_s/step', 0.0):5.1f} s   {left}"
    )
