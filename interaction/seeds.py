"""Seeds derived from names, so that no part of a run depends on a global generator.

Promises: the same parts give the same seed on every machine and in every process.
Knows nothing of what a seed is used for.
"""

from __future__ import annotations

import hashlib
import random

_PERSON_BITS = 48


def derive_seed(*parts: str | int) -> int:
    """Return a 63-bit seed for `parts`, e.g. `derive_seed(run_seed, task_id, "user", k)`."""
    # The length in front of each part keeps ("ab", "c") and ("a", "bc") apart.
    text = "".join(f"{len(str(part))}:{part}" for part in parts)
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def again_seed(seed: int, attempt: int) -> int:
    """Return the seed of one more try at a user's turn: other words, the same person."""
    chance = derive_seed(seed, "again", attempt) >> _PERSON_BITS
    return chance << _PERSON_BITS | person_seed(seed)


def person_seed(seed: int) -> int:
    """Return the part of a user's seed that says who they are; no further try changes it."""
    return seed & ((1 << _PERSON_BITS) - 1)


def derive_random(*parts: str | int) -> random.Random:
    """Return a generator of its own for `parts`."""
    return random.Random(derive_seed(*parts))
