"""From a batch of next-token logits to one token and its log-probability a row.

Promises: every row is sampled by its own parameters and its own uniform number, so a
request's tokens never depend on which requests share the batch. Pure functions.
Knows nothing of models, caches or requests in flight.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn.functional import pad

from serving.generation import SamplingParams

_BLOCK = 256  # tokens; about the root of a vocabulary's size


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
    scaled = logits.float().div(temperatures[:, None]).contiguous()
    peaks = scaled.amax(dim=-1, keepdim=True)
    weights = (scaled - peaks).exp_()
    tokens, total = _invert(weights, torch.tensor(uniforms))
    cut = [i for i, p in enumerate(params) if p.temperature and (p.top_p < 1 or p.top_k > 0)]
    for row in cut:
        kept = torch.where(_is_kept(scaled[row], params[row]), weights[row], 0.0)
        tokens[row] = _invert(kept[None], torch.tensor(uniforms[row : row + 1]))[0][0]
    if greedy.any():
        tokens = torch.where(greedy, scaled.argmax(dim=-1), tokens)
    log_probs = scaled.gather(1, tokens[:, None])[:, 0] - peaks[:, 0] - total.log()
    return tokens.tolist(), log_probs.tolist()


def _invert(weights: torch.Tensor, uniforms: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return, per row, the token at a share `uniform` of the summed weights, and the sum.

    In two levels, as a sum over a whole vocabulary costs more than all else here: first the
    block of tokens, then the token in it. Only tokens with a weight above zero are drawn.
    """
    missing = -weights.shape[1] % _BLOCK
    whole = pad(weights, (0, missing)) if missing else weights
    blocks = whole.view(len(whole), -1, _BLOCK)
    cumulative = blocks.sum(dim=-1).cumsum_(dim=-1)
    total = cumulative[:, -1]
    block, into = _first_beyond(cumulative, uniforms * total)
    rows = torch.arange(len(weights))
    inner, _ = _first_beyond(blocks[rows, block].cumsum(dim=-1), into)
    return block * _BLOCK + inner, total


def _first_beyond(
    cumulative: torch.Tensor, targets: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return where each row first exceeds its target, and how far the target lies behind the one
    before. A target that rounding put past the end counts as just before it.
    """
    targets = torch.minimum(targets, torch.nextafter(cumulative[:, -1], torch.tensor(0.0)))
    found = torch.searchsorted(cumulative, targets[:, None], right=True)
    before = torch.where(found > 0, cumulative.gather(1, (found - 1).clamp_(min=0)), 0.0)
    return found[:, 0], targets - before[:, 0]


def _is_kept(row: torch.Tensor, params: SamplingParams) -> torch.Tensor:
    """Return which tokens top-k and top-p leave, likeliest first until both are met."""
    values, order = row.sort(descending=True)
    keep = torch.ones_like(values, dtype=torch.bool)
    if params.top_k > 0:
        keep[params.top_k :] = False
    if params.top_p < 1:
        probabilities = torch.softmax(values.masked_fill(~keep, -torch.inf), dim=-1)
        before = probabilities.cumsum(dim=-1) - probabilities
        keep &= before < params.top_p
    return torch.zeros_like(keep).index_put((order,), keep)
