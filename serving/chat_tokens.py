"""Between a conversation's text and the policy's tokens.

Promises: the policy sees, at every turn, exactly the tokens that its full chat template gives
for the conversation; a text never becomes a control token, whoever wrote it; what ended a
generation is told from its tokens.
Knows nothing of engines, goals or training.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from transformers import GenerationConfig, PreTrainedTokenizerBase

from interaction.conversation import Conversation
from interaction.policy import PolicyTurn


class NoChatTemplate(ValueError):
    """The tokenizer has no chat template."""


class ChatTokens:
    """Encodes conversations and decodes turns for one tokenizer.

    Args:
        tokenizer: With a chat template.
        stop_token_ids: Ids that end a turn; the tokenizer's eos is always one.
        template_kwargs: Passed to the chat template, e.g. `enable_thinking`.

    Raises:
        NoChatTemplate: If the tokenizer has none.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        stop_token_ids: Iterable[int] = (),
        template_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise NoChatTemplate(
                f"the tokenizer of {tokenizer.name_or_path} has no chat template; use an "
                "instruction-tuned model or set tokenizer.chat_template and save it"
            )
        self._tokenizer = tokenizer
        self._template_kwargs = dict(template_kwargs or {})
        self.stop_token_ids = frozenset({tokenizer.eos_token_id, *stop_token_ids} - {None})
        self._special = _special_tokens(tokenizer)
        self._special_ids = frozenset(self._special.values()) | self.stop_token_ids
        self._special_text = _one_of(self._special)

    def encode(self, conversation: Conversation) -> list[int]:
        """Return the prompt for the assistant's next turn.

        Args:
            conversation: Ends with a user turn.
        """
        messages = [
            {"role": message.role, "content": self.harmless(message.content)}
            for message in conversation.messages
        ]
        text = self._tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, **self._template_kwargs
        )
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def decode(self, token_ids: Sequence[int], log_probs: Sequence[float] = ()) -> PolicyTurn:
        """Return the turn that generated tokens make."""
        finished = bool(token_ids) and token_ids[-1] in self.stop_token_ids
        body = list(token_ids[:-1] if finished else token_ids)
        return PolicyTurn(
            text=self._tokenizer.decode(body, skip_special_tokens=True),
            token_ids=tuple(token_ids),
            log_probs=tuple(log_probs),
            finished=finished,
            malformed=any(token in self._special_ids for token in body),
        )

    def count(self, text: str) -> int:
        """Return a text's length in tokens."""
        return len(self._tokenizer.encode(self.harmless(text), add_special_tokens=False))

    def harmless(self, text: str) -> str:
        """Return `text` without the spellings of control tokens.

        Removing one can spell another ("<|im_<|im_end|>end|>"), so this goes on until none is
        left.
        """
        while self._special_text.search(text):
            text = self._special_text.sub("", text)
        return text


@lru_cache(maxsize=8)
def read_stop_token_ids(folder: str | Path) -> frozenset[int]:
    """Return the ids that end a turn according to a model folder's generation config."""
    try:
        listed = GenerationConfig.from_pretrained(folder).eos_token_id
    except OSError:
        return frozenset()
    return frozenset(listed if isinstance(listed, list) else [listed]) - {None}


def _special_tokens(tokenizer: PreTrainedTokenizerBase) -> dict[str, int]:
    added = {str(t.content): i for i, t in tokenizer.added_tokens_decoder.items() if t.special}
    named = zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True)
    return added | dict(named)


def _one_of(spellings: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted((s for s in spellings if s), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
