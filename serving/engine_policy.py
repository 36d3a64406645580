"""A Hugging Face model as a policy, on the embedded engine and outside verl.

Promises: each turn has its own budget and seed; same seed, same turn; many conversations decode
together; code that a model brings along is never run.
Knows nothing of verl, users, goals or rewards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from interaction.conversation import Conversation
from interaction.policy import PolicyTurn
from serving.async_engine import AsyncEngine
from serving.chat_tokens import ChatTokens, read_stop_token_ids
from serving.cpu_engine import CpuEngine
from serving.generation import SamplingParams

_LONGEST = 4096


@dataclass(frozen=True)
class EnginePolicy:
    """The embedded engine as a policy.

    Attributes:
        engine: The engine.
        tokens: The model's chat tokens.
        temperature: 0 is greedy.
        top_p: Nucleus mass in (0, 1]; 1 keeps everything.

    Raises:
        ValueError: If temperature or top_p is out of range.
    """

    engine: AsyncEngine
    tokens: ChatTokens
    temperature: float = 0.8
    top_p: float = 1.0

    def __post_init__(self) -> None:
        self._sampling(1, 0)

    async def reply(self, conversation: Conversation, max_tokens: int, seed: int) -> PolicyTurn:
        """Take the assistant's turn.

        Raises:
            ValueError: If the conversation is longer than the engine takes.
            EngineClosed: If the engine was closed or broke.
        """
        params = self._sampling(max_tokens, seed)
        made = await self.engine.generate(self.tokens.encode(conversation), params)
        return self.tokens.decode(made.token_ids, made.log_probs)

    def _sampling(self, max_tokens: int, seed: int) -> SamplingParams:
        return SamplingParams(
            max_tokens=max_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            seed=seed,
            stop_token_ids=self.tokens.stop_token_ids,
        )


@contextmanager
def engine_policy(
    folder: Path,
    max_sequences: int = 8,
    *,
    temperature: float = 0.8,
    top_p: float = 1.0,
    max_length: int = _LONGEST,
    dtype: torch.dtype = torch.float32,
) -> Iterator[EnginePolicy]:
    """Load a model, serve it as a policy, and stop its engine at the end.

    Args:
        folder: A Hugging Face model with a chat template.
        max_sequences: Most conversations that decode together.
        temperature, top_p: How every turn is sampled.
        max_length: Most tokens of a conversation; what the model reads, if that is fewer.
        dtype: What the weights are computed in.

    Raises:
        ValueError: If there is no such model, or the engine cannot run it.
    """
    if not (folder / "config.json").is_file():
        raise ValueError(f"{folder}: not a Hugging Face model folder (it has no config.json)")
    tokens = ChatTokens(AutoTokenizer.from_pretrained(folder), read_stop_token_ids(folder))
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    except OSError as error:
        raise ValueError(f"{folder}: {error}") from error
    longest = min(max_length, model.config.get_text_config().max_position_embeddings)
    engine = AsyncEngine(CpuEngine(model, max_sequences=max_sequences, max_length=longest))
    try:
        yield EnginePolicy(engine, tokens, temperature, top_p)
    finally:
        engine.close()
