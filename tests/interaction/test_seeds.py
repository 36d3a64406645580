"""Derived seeds: stable across processes, different for different parts."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from interaction.seeds import again_seed, derive_seed, person_seed

parts = st.lists(st.one_of(st.text(max_size=6), st.integers(0, 99)), min_size=1, max_size=4)


@given(parts)
def test_a_seed_is_a_63_bit_number(given_parts: list[str | int]) -> None:
    assert 0 <= derive_seed(*given_parts) < 2**63


def test_another_process_derives_the_same_seed() -> None:
    code = "from interaction.seeds import derive_seed; print(derive_seed(1, 'task', 'user', 0))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(told.stdout) == derive_seed(1, "task", "user", 0)


def test_where_one_part_ends_matters() -> None:
    assert derive_seed("ab", "c") != derive_seed("a", "bc")


@given(st.sets(st.integers(0, 10_000), min_size=2, max_size=50))
def test_different_indices_give_different_seeds(indices: set[int]) -> None:
    assert len({derive_seed("future", k) for k in indices}) == len(indices)


@given(st.integers(0, 2**63 - 1), st.integers(1, 50))
def test_another_try_is_the_same_person_with_another_seed(seed: int, attempt: int) -> None:
    again = again_seed(seed, attempt)
    assert person_seed(again) == person_seed(seed) and 0 <= again < 2**63
    assert again != again_seed(seed, attempt + 1)
