"""What the engine needs to know of a Hugging Face model: whether it can run it, and its head.

Promises: only reads the model. Knows nothing of caches or requests.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from transformers import PreTrainedModel


def read_head(model: PreTrainedModel) -> Callable[[torch.Tensor], torch.Tensor] | None:
    """Return what makes float32 logits of hidden states, None if only the model itself can.

    A bfloat16 logit of 16 is rounded to the next 0.125, which is most of what engine and trainer
    then disagree by; in float32 the head costs a few percent of a step.
    """
    config = model.config.get_text_config()
    head = model.get_output_embeddings()
    changed_after = ("final_logit_softcapping", "logit_scale", "logits_scaling")
    if not isinstance(head, torch.nn.Linear) or any(
        getattr(config, n, None) for n in changed_after
    ):
        return None
    weight = head.weight.detach().float()
    bias = None if head.bias is None else head.bias.detach().float()

    # Not F.linear: for few rows and a large vocabulary this order takes about half the time.
    def logits(hidden: torch.Tensor) -> torch.Tensor:
        columns = torch.mm(weight, hidden.float().t()).t()
        return columns if bias is None else columns + bias

    return logits


def check_attention_is_full(model: PreTrainedModel, max_length: int) -> None:
    """Raise ValueError if some layer could not see all of `max_length` tokens."""
    config = model.config.get_text_config()
    window = getattr(config, "sliding_window", None)
    if not getattr(config, "use_sliding_window", True):
        window = None
    if window is not None and window < max_length:
        raise ValueError(
            f"{model.config.model_type} attends within {window} tokens only: the CPU engine "
            f"needs max_length <= {window}, got {max_length}"
        )
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if kinds - {"full_attention", "sliding_attention"}:
        raise ValueError(f"{model.config.model_type} has layers of kind {kinds}: not supported")
