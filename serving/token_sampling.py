"""From a batch of next-token logits to one token and its log-probability a row.

Promises: every row is sampled by its own parameters and its own uniform number, so a
request's tokens never depend on which requests share the batch. Pure functions.
Knows nothing of models, caches or requests in flight.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from serving.generation import SamplingParams


def sample_tokens(
    logits: torch.Tensor, params: Sequence[SamplingParams], uniforms: Sequence[float]
) -> tuple[list[int], list[float]]:
    """Draw one token a row by inverting the cumulative distribution.

    Args:
        logits: [n, vocabulary], any float type.
        params: n sampling parameters.
        uniforms: n numbers in [0, 1), one per row; ignored where temperature is 0.

    Returns:
        n token ids, and their log-probabilities under the tempered distribution before
        top-k and top-p cut it: the number a trainer computes for the same token.
    """
    greedy = torch.tensor([p.temperature == 0 for p in params])
    temperatures = torch.tensor([p.temperature or 1.0 for p in params])
    scaled = logits.float() / temperatures[:, None]
    normalizers = torch.logsumexp(scaled, dim=-1)
    kept = _truncate(scaled, params)
    cumulative = torch.softmax(kept, dim=-1).cumsum_(dim=-1)
    targets = torch.tensor(uniforms)[:, None] * cumulative[:, -1:]
    drawn = torch.searchsorted(cumulative, targets, right=True)[:, 0]
    tokens = torch.where(greedy, scaled.argmax(dim=-1), drawn.clamp_(max=logits.shape[-1] - 1))
    log_probs = scaled.gather(1, tokens[:, None])[:, 0] - normalizers
    return tokens.tolist(), log_probs.tolist()


def _truncate(scaled: torch.Tensor, params: Sequence[SamplingParams]) -> torch.Tensor:
    """Return `scaled` with what a row's top-k and top-p exclude set to minus infinity."""
    rows = [i for i, p in enumerate(params) if p.temperature and (p.top_p < 1 or p.top_k > 0)]
    if not rows:
        return scaled
    kept = scaled.clone()
    for row in rows:
        kept[row] = _truncate_row(scaled[row], params[row])
    return kept


def _truncate_row(row: torch.Tensor, params: SamplingParams) -> torch.Tensor:
    values, order = row.sort(descending=True)
    keep = torch.ones_like(values, dtype=torch.bool)
    if params.top_k > 0:
        keep[params.top_k :] = False
    if params.top_p < 1:
        probabilities = torch.softmax(values.masked_fill(~keep, -torch.inf), dim=-1)
        before = probabilities.cumsum(dim=-1) - probabilities
        keep &= before < params.top_p
    out = torch.full_like(row, -torch.inf)
    out[order[keep]] = values[keep]
    return out
