"""Kept prefixes: the longest is found, the budget holds, clear forgets."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from serving.prefix_store import PrefixStore, common_prefix

tokens = st.lists(st.integers(0, 2), max_size=12).map(tuple)


def entries(length: int) -> torch.Tensor:
    return torch.arange(length, dtype=torch.float32).expand(2, 1, 1, length)[..., None].clone()


@given(tokens, tokens)
def test_the_common_prefix_is_as_long_as_it_can_be(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    shared = common_prefix(a, b)
    assert a[:shared] == b[:shared]
    assert shared == min(len(a), len(b)) or a[shared] != b[shared]


@given(st.lists(tokens.filter(bool), min_size=1, max_size=8), tokens)
def test_the_longest_shared_prefix_is_found(
    kept: list[tuple[int, ...]], wanted: tuple[int, ...]
) -> None:
    store = PrefixStore(1 << 20)
    for sequence in kept:
        store.put(sequence, entries(len(sequence)))
    length, found = store.longest(wanted)
    assert length == max(common_prefix(sequence, wanted) for sequence in kept)
    assert (found is None) == (length == 0)
    if found is not None:
        assert found[0, 0, 0, :, 0].tolist() == list(range(length))


def test_the_least_recently_used_goes_first() -> None:
    store = PrefixStore(2 * entries(3).nbytes)
    store.put((1, 1, 1), entries(3))
    store.put((2, 2, 2), entries(3))
    store.longest((1, 1))
    store.put((3, 3, 3), entries(3))
    assert store.longest((2,))[0] == 0
    assert store.longest((1,))[0] == 1
    assert store.bytes <= 2 * entries(3).nbytes


def test_what_does_not_fit_is_not_kept() -> None:
    store = PrefixStore(4)
    store.put((1, 2, 3), entries(3))
    assert len(store) == 0 and store.bytes == 0


def test_clear_forgets_everything() -> None:
    store = PrefixStore(1 << 20)
    store.put((1, 2), entries(2))
    store.clear()
    assert store.longest((1, 2)) == (0, None) and store.bytes == 0
