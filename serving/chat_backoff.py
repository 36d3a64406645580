"""How long to wait before a call is tried again, and when to stop: one object per question.

Promises: waits are drawn from a growing, capped range; a Retry-After is honoured; all waits
together stay within the budget; the last try is followed by no wait.
Knows nothing of HTTP.
"""

from __future__ import annotations

import random

from tenacity import RetryCallState, wait_random_exponential

from serving.chat_faults import CallFault

FIRST_S = 0.5
CAP_S = 30.0
SPREAD = 0.1  # of a Retry-After: all who were told the same do not come back at once


class Backoff:
    """`wait` and `stop` of a tenacity loop.

    Args:
        max_attempts: Tries, the first one included.
        max_wait_s: Seconds of waiting, all waits together.

    Attributes:
        verdict: Why it stopped, once it has.
    """

    def __init__(self, max_attempts: int, max_wait_s: float) -> None:
        self._max_attempts = max_attempts
        self._max_wait_s = max_wait_s
        self._draw = wait_random_exponential(multiplier=FIRST_S, max=CAP_S)
        self.verdict = "no other try would help"

    def wait(self, state: RetryCallState) -> float:
        """Return the seconds to wait now."""
        left = self._left(state)
        asked = _asked(state)
        if not asked:  # "at once" is what it says, and not what it can take
            return max(0.0, min(self._draw(state), left))
        return min(asked * (1 + random.uniform(0, SPREAD)), max(asked, left))

    def stop(self, state: RetryCallState) -> bool:
        """Say whether to give up now, before the wait."""
        left = self._left(state)
        asked = _asked(state)
        if state.attempt_number >= self._max_attempts:
            self.verdict = f"{self._max_attempts} tries are all it gets (max_attempts)"
        elif asked is not None and asked > left:
            self.verdict = f"it asks to wait {asked:.3g} s, and {left:.3g} s are left (max_wait_s)"
        elif left <= 0:
            self.verdict = f"it has waited {self._max_wait_s:g} s (max_wait_s)"
        else:
            return False
        return True

    def _left(self, state: RetryCallState) -> float:
        return self._max_wait_s - state.idle_for


def is_retried(error: BaseException) -> bool:
    """Say whether a failed try may be followed by another."""
    return isinstance(error, CallFault) and error.retried


def _asked(state: RetryCallState) -> float | None:
    error = state.outcome.exception() if state.outcome else None
    return error.retry_after if isinstance(error, CallFault) else None
