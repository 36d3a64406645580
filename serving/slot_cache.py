"""Keys and values of many sequences at once: one row (slot) a sequence.

Promises: a sequence's entries live at [row, :, 0:length] whatever joins or leaves; rows
0..n-1 are the active ones; nothing is moved while decoding but one row when one leaves.
Knows nothing of tokens, sampling or requests.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import AttentionInterface, PretrainedConfig
from transformers.cache_utils import Cache

GROUPED_ATTENTION = "collabllm_grouped"


def grouped_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor,
    scaling: float | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Attend with grouped queries without copying keys and values once per group.

    The queries that share a key head are laid side by side as more query positions, so the
    cache is read in place. Transformers' own SDPA path expands it first: measured 3-6 times
    slower at 32 rows of 200 positions on two cores (benchmarks/engine.py).

    Args:
        query: [rows, heads, q, dim]; key, value: [rows, key_heads, length, dim].
        attention_mask: Additive, [rows, 1, q, length].

    Returns:
        [rows, q, heads, dim], and None for the weights.
    """
    rows, heads, positions, dim = query.shape
    key_heads = key.shape[1]
    groups = heads // key_heads
    folded = query.reshape(rows, key_heads, groups * positions, dim)
    mask = attention_mask if positions == 1 else attention_mask.repeat(1, 1, groups, 1)
    out = torch.nn.functional.scaled_dot_product_attention(
        folded, key, value, attn_mask=mask, scale=scaling
    )
    return out.reshape(rows, heads, positions, dim).transpose(1, 2), None


AttentionInterface.register(GROUPED_ATTENTION, grouped_attention)


class SlotCache(Cache):  # type: ignore[misc]  # transformers ships no types
    """A transformers cache whose batch rows are slots of different length.

    Call `select` before each forward pass; `update` then writes the new entries at their
    own positions and returns the rows' entries up to the longest.
    """

    def __init__(self, config: PretrainedConfig, dtype: torch.dtype) -> None:
        super().__init__(layers=[])
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self._shape = (config.num_hidden_layers, heads, dim)
        self._dtype = dtype
        self.keys = torch.zeros(config.num_hidden_layers, 0, heads, 0, dim, dtype=dtype)
        self.values = torch.zeros_like(self.keys)
        self._rows = slice(0, 0)
        self._row_index = torch.zeros(0, 1, dtype=torch.long)
        self._positions = torch.zeros(0, 1, dtype=torch.long)
        self._length = 0

    @property
    def bytes_per_token(self) -> int:
        """Bytes that one position of one sequence takes, keys and values of all layers."""
        layers, heads, dim = self._shape
        return int(2 * layers * heads * dim * self._dtype.itemsize)

    def reserve(self, rows: int, length: int) -> None:
        """Make room for `rows` sequences of `length` positions; keeps what is there."""
        layers, heads, dim = self._shape
        old_rows, old_length = self.keys.shape[1], self.keys.shape[3]
        if rows <= old_rows and length <= old_length:
            return
        # Grow in steps, so that a sequence that gets longer does not copy the cache each time.
        rows = max(old_rows, -(-rows // 8) * 8)
        length = max(old_length, -(-length // 128) * 128)
        for name in ("keys", "values"):
            grown = torch.zeros(layers, rows, heads, length, dim, dtype=self._dtype)
            grown[:, :old_rows, :, :old_length] = getattr(self, name)
            setattr(self, name, grown)

    def release(self) -> None:
        """Give the memory back; every row's entries are gone."""
        layers, heads, dim = self._shape
        self.keys = torch.zeros(layers, 0, heads, 0, dim, dtype=self._dtype)
        self.values = torch.zeros_like(self.keys)

    def select(self, rows: slice, positions: torch.Tensor) -> torch.Tensor:
        """Choose where the next forward pass reads and writes.

        Args:
            rows: The contiguous rows of this pass.
            positions: [rows, q], each new token's position in its own sequence.

        Returns:
            The additive attention mask, [rows, 1, q, longest]: a token sees its own row up
            to and including itself.
        """
        self._rows = rows
        self._row_index = torch.arange(rows.start, rows.stop)[:, None]
        self._positions = positions
        self._length = int(positions.max()) + 1
        hidden = torch.arange(self._length) > positions[:, None, :, None]
        return torch.zeros(hidden.shape, dtype=self._dtype).masked_fill_(hidden, -torch.inf)

    def update(
        self,
        key_states: torch.Tensor,
        value_states: torch.Tensor,
        layer_idx: int,
        *_: Any,
        **__: Any,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write a layer's new entries, [rows, heads, q, dim]; return the rows' entries."""
        keys, values = self.keys[layer_idx], self.values[layer_idx]
        keys[self._row_index, :, self._positions] = key_states.transpose(1, 2)
        values[self._row_index, :, self._positions] = value_states.transpose(1, 2)
        return keys[self._rows, :, : self._length], values[self._rows, :, : self._length]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return 0: positions are always passed explicitly."""
        return 0

    def read(self, row: int, length: int) -> torch.Tensor:
        """Return a copy of a row's first `length` positions, [2, layers, heads, length, dim]."""
        return torch.stack([self.keys[:, row, :, :length], self.values[:, row, :, :length]])

    def write(self, row: int, entries: torch.Tensor) -> None:
        """Put `entries` (of `read`) at the start of a row."""
        self.keys[:, row, :, : entries.shape[3]] = entries[0]
        self.values[:, row, :, : entries.shape[3]] = entries[1]

    def copy(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` positions of one row to another."""
        self.keys[:, target, :, :length] = self.keys[:, source, :, :length]
        self.values[:, target, :, :length] = self.values[:, source, :, :length]
