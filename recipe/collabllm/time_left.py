"""Shows on stderr how much of some work is done and how long the rest will take.

Promises: nothing stays on the screen afterwards. Knows nothing of the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn


@contextmanager
def time_left(what: str, total: int) -> Iterator[Callable[[], object]]:
    """Give what is to be called after each part that is done.

    Args:
        what: The parts' name.
        total: Their number.
    """
    columns = (*Progress.get_default_columns()[:-1], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        work = progress.add_task(what, total=total)
        yield lambda: progress.advance(work)
