"""Keys and values of sequences that ended, kept for those that will begin alike.

Promises: the longest common prefix is found; memory stays within its budget, the least
recently used entry goes first; `clear` forgets all (weights changed).
Knows nothing of requests or models.
"""

from __future__ import annotations

from collections import OrderedDict

import torch


def common_prefix(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """Return how many leading elements two sequences share."""
    low, high = 0, min(len(a), len(b))
    while low < high:  # slices compare at C speed, so halving beats walking
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class PrefixStore:
    """Finished sequences by their tokens, least recently used first.

    Args:
        max_bytes: Most memory the entries may take; 0 keeps none.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[tuple[int, ...], torch.Tensor] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def bytes(self) -> int:
        """Memory that the entries take."""
        return self._bytes

    def would_keep(self, size: int) -> bool:
        """Return whether an entry of `size` bytes can be kept at all."""
        return size <= self._max_bytes

    def put(self, tokens: tuple[int, ...], entries: torch.Tensor) -> None:
        """Keep a sequence's entries, [2, layers, heads, len(tokens), dim]."""
        if tokens in self._entries:
            self._entries.move_to_end(tokens)
            return
        if not self.would_keep(entries.nbytes):
            return
        self._entries[tokens] = entries
        self._bytes += entries.nbytes
        while self._bytes > self._max_bytes:
            _, oldest = self._entries.popitem(last=False)
            self._bytes -= oldest.nbytes

    def longest(self, tokens: tuple[int, ...]) -> tuple[int, torch.Tensor | None]:
        """Return the longest shared prefix's length and its entries (None if 0)."""
        best, best_key = 0, None
        for key in self._entries:
            shared = common_prefix(key, tokens)
            if shared > best:
                best, best_key = shared, key
        if best_key is None:
            return 0, None
        self._entries.move_to_end(best_key)
        return best, self._entries[best_key][:, :, :, :best]

    def clear(self) -> None:
        """Forget every entry."""
        self._entries.clear()
        self._bytes = 0
