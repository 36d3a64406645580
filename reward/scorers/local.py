"""A reward model in this process: any sequence classifier that transformers can load.

Promises: loaded with the first conversation, once per process; runs in a thread, one
conversation at a time; no code from the model's folder is run. Knows nothing of servers.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from interaction.conversation import Message
from reward.scorers.scorer import ScorerFailed, finite, without_control

_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class LocalScorer:
    """Scores with a model of this process.

    Attributes:
        path: Its folder, or its name on the hub.
        label: Which of its outputs is the number; a reward model has one, 0.
        device: Where it runs, as torch names it.
    """

    path: str
    label: int = 0
    device: str = "cpu"

    async def number(self, messages: Sequence[Message]) -> float:
        """Return the output for a conversation; see `Scorer`."""
        return await asyncio.to_thread(self._number, messages)

    def _number(self, messages: Sequence[Message]) -> float:
        import torch

        with _ONE_AT_A_TIME, torch.inference_mode():
            model, tokenizer = _load(self.path, self.device)
            inputs = _inputs(model, tokenizer, messages)
            outputs = model(**inputs.to(self.device)).logits[0]
            if not 0 <= self.label < len(outputs):
                raise ScorerFailed(
                    f"{self.path} has {len(outputs)} outputs; label must be below that"
                )
            return finite(outputs[self.label].item())


def _inputs(model: Any, tokenizer: Any, messages: Sequence[Message]) -> Any:
    inputs = tokenizer.apply_chat_template(
        without_control(messages, control_tokens(tokenizer)),
        return_tensors="pt",
        return_dict=True,
    )
    length = inputs["input_ids"].shape[1]
    longest = getattr(model.config, "max_position_embeddings", None)
    if longest is not None and length > longest:
        raise ScorerFailed(f"the conversation has {length} tokens; the model takes {longest}")
    return inputs


def control_tokens(tokenizer: Any) -> list[str]:
    """Return the tokens of a tokenizer that are no text, such as the end of a turn."""
    added = tokenizer.added_tokens_decoder.values()
    return [*tokenizer.all_special_tokens, *(token.content for token in added if token.special)]


@lru_cache(maxsize=4)
def _load(path: str, device: str) -> tuple[Any, Any]:
    from transformers import AutoModelForSequenceClassification

    tokenizer = load_tokenizer(path)
    try:
        model, info = AutoModelForSequenceClassification.from_pretrained(
            path, dtype="auto", trust_remote_code=False, output_loading_info=True
        )
    except (OSError, ValueError) as error:
        raise ScorerFailed(f"no sequence classifier can be loaded from {path!r}: {error}") from None
    if info["missing_keys"]:
        missing = ", ".join(sorted(info["missing_keys"])[:3])
        raise ScorerFailed(f"{path!r} is no trained sequence classifier: it has no {missing}")
    return model.to(device).eval(), tokenizer


@lru_cache(maxsize=4)
def load_tokenizer(path: str) -> Any:
    """Load a tokenizer that has a chat template.

    Raises:
        ScorerFailed: If there is none.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise ScorerFailed(f"no tokenizer can be loaded from {path!r}: {error}") from None
    if not tokenizer.chat_template:
        raise ScorerFailed(f"the tokenizer of {path!r} has no chat template")
    return tokenizer
