"""How long a text is, where no policy is loaded: a tokenizer's tokens, or words.

Promises: code that a tokenizer brings along is never run; without a tokenizer it is said that
words are counted. Knows nothing of what is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from recipe.collabllm.metric_choice import ChoiceError
from reward.metric import count_words

CountTokens = Callable[[str], int]

_WORDS = (
    "[yellow]token_amount counts words[/yellow]: name the policy's tokenizer with "
    "--tokenizer FOLDER to count its tokens"
)


def token_counter(
    folder: Path | None, metrics: Collection[str], say: Callable[[str], None]
) -> CountTokens:
    """Return what counts a text's tokens.

    Args:
        folder: A Hugging Face folder with a tokenizer; None for words.
        metrics: Names of what is scored: whether words are counted matters to one only.
        say: Told what is counted.

    Raises:
        ChoiceError: If there is no such tokenizer.
    """
    if folder is None:
        if "token_amount" in metrics:
            say(_WORDS)
        return count_words
    if not folder.is_dir():
        raise ChoiceError(f"--tokenizer {folder}: no such folder")
    try:
        from transformers import AutoTokenizer

        from serving.chat_tokens import ChatTokens
    except ImportError as error:
        raise ChoiceError(
            f"--tokenizer needs transformers ({error}): install it, or leave the option out"
        ) from error
    try:
        return ChatTokens(AutoTokenizer.from_pretrained(folder)).count
    except (OSError, ValueError, KeyError) as error:
        raise ChoiceError(f"--tokenizer {folder}: {error}") from error
