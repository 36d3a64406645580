"""The policy inside verl: verl's LLM servers behind the `Policy` protocol.

Promises: token in, token out; each turn has its own budget and seed; all turns of one reply
carry one request id, so that they go to the server that holds their prefix.
Knows nothing of users, goals or rewards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from verl.workers.rollout.llm_server import LLMServerClient
from verl.workers.rollout.replica import TokenOutput

from interaction.conversation import Conversation
from interaction.policy import PolicyTurn
from serving.chat_tokens import ChatTokens


@dataclass(frozen=True)
class VerlPolicy:
    """verl's servers as a policy.

    Attributes:
        server: verl's client.
        tokens: The policy's chat tokens.
        sampling: verl's sampling parameters of this rollout.
        request_id: The same for all turns of one reply.
        seed_parameter: Name under which the rollout takes a seed; None if it takes none.
    """

    server: LLMServerClient
    tokens: ChatTokens
    sampling: Mapping[str, Any]
    request_id: str
    seed_parameter: str | None

    async def reply(self, conversation: Conversation, max_tokens: int, seed: int) -> PolicyTurn:
        """Take the assistant's turn."""
        turn, _ = await self.generate(self.tokens.encode(conversation), max_tokens, seed)
        return turn

    async def generate(
        self, prompt_ids: list[int], max_tokens: int, seed: int
    ) -> tuple[PolicyTurn, TokenOutput]:
        """Generate from a prompt of tokens; also return verl's own output."""
        sampling = {**self.sampling, "max_tokens": max_tokens}
        if self.seed_parameter:
            sampling[self.seed_parameter] = seed
        output: TokenOutput = await self.server.generate(
            self.request_id, prompt_ids=prompt_ids, sampling_params=sampling
        )
        return self.tokens.decode(output.token_ids, output.log_probs or ()), output
