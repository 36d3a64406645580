"""Training sequences that share prompts, laid out so that each prompt is computed once.

The n replies to a prompt are n sequences with one prefix; computed apart, a step reads the
prompt n times. Here a row holds a prompt and, behind it, all its replies: a reply's tokens see
the prompt and their own past, and carry the positions they would have alone. Log-probabilities
and gradients are the same as apart, for about a third of the tokens.

Promises: pure tensor layout. Knows nothing of models, verl or losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class SharedPromptBatch:
    """A batch in rows of one prompt and its replies.

    Prompts end at column `prompt_width`, so every reply starts from there on.

    Attributes:
        input_ids: [rows, width].
        position_ids: [rows, width].
        hidden: [rows, width, width], True where a token must not look.
        prompt_width: Columns of the longest prompt.
        predictors: For every reply token of every sequence, in order, the flat index
            (row * (width - prompt_width + 1) + column - (prompt_width - 1)) of the position that
            predicts it, among columns `prompt_width - 1` and later.
        labels: Those reply tokens.
    """

    input_ids: torch.Tensor
    position_ids: torch.Tensor
    hidden: torch.Tensor
    prompt_width: int
    predictors: torch.Tensor
    labels: torch.Tensor

    @property
    def kept_columns(self) -> torch.Tensor:
        """The columns whose logits are needed."""
        return torch.arange(self.prompt_width - 1, self.input_ids.shape[1])


def lay_out(
    prompts: Sequence[torch.Tensor], replies: Sequence[torch.Tensor], pad: int
) -> SharedPromptBatch:
    """Lay sequences out by prompt.

    Args:
        prompts, replies: One tensor of token ids a sequence, none of them empty.
        pad: Token id for the cells that stay empty.
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for i, prompt in enumerate(prompts):
        groups.setdefault(tuple(prompt.tolist()), []).append(i)
    prompt_width = max(map(len, groups))
    width = prompt_width + max(sum(len(replies[i]) for i in own) for own in groups.values())
    rows = len(groups)
    input_ids = torch.full((rows, width), pad, dtype=torch.long)
    position_ids = torch.zeros(rows, width, dtype=torch.long)
    segment = torch.full((rows, width), -1)  # -1 empty, 0 prompt, 1.. replies
    kept = width - prompt_width + 1
    predictors: list[torch.Tensor] = [torch.empty(0)] * len(prompts)
    for row, (tokens, own) in enumerate(groups.items()):
        length = len(tokens)
        input_ids[row, prompt_width - length : prompt_width] = torch.tensor(tokens)
        position_ids[row, prompt_width - length : prompt_width] = torch.arange(length)
        segment[row, prompt_width - length : prompt_width] = 0
        start = prompt_width
        for number, i in enumerate(own, start=1):
            end = start + len(replies[i])
            input_ids[row, start:end] = replies[i]
            position_ids[row, start:end] = torch.arange(length, length + end - start)
            segment[row, start:end] = number
            before = torch.arange(start - 1, end - 1)
            before[0] = prompt_width - 1
            predictors[i] = row * kept + before - (prompt_width - 1)
            start = end
    return SharedPromptBatch(
        input_ids,
        position_ids,
        _hidden(segment),
        prompt_width,
        torch.cat(predictors),
        torch.cat(list(replies)),
    )


def _hidden(segment: torch.Tensor) -> torch.Tensor:
    """Return what each token must not see: later tokens, other replies, empty cells."""
    width = segment.shape[1]
    later = torch.ones(width, width, dtype=torch.bool).triu(1)
    asks, sees = segment[:, :, None], segment[:, None, :]
    visible = (sees == asks) | ((sees == 0) & (asks > 0))
    # An empty cell sees itself, so that its softmax is a number.
    return later | ~(visible & ((sees >= 0) | torch.eye(width, dtype=torch.bool)))
