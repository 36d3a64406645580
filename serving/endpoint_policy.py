"""A policy behind an OpenAI-compatible endpoint: any model that is served anywhere.

Promises: what the model said is its turn, cut or empty as it may be, and never asked for again;
a call that gave no turn is `ChatFailed`, after the client's retries and within its limits. Knows
nothing of users, goals or rewards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from interaction.conversation import Conversation
from interaction.policy import PolicyTurn
from serving.chat_client import ChatClient
from serving.chat_faults import CallFault


@dataclass(frozen=True)
class EndpointPolicy:
    """A chat endpoint as a policy; its turns hold no tokens, because endpoints tell none.

    Attributes:
        client: Who is called; its endpoint says how turns are sampled, its `totals` what they
            have cost.
    """

    client: ChatClient

    async def reply(self, conversation: Conversation, max_tokens: int, seed: int) -> PolicyTurn:
        """Take the assistant's turn.

        Raises:
            ChatFailed: If the endpoint gave none; says why and what to do.
        """
        answer = await self.client.said(
            conversation.messages, policy_turn, seed=seed, max_tokens=max_tokens
        )
        return answer.value


def policy_turn(response: Any) -> PolicyTurn:
    """Return what a chat completion says, as a policy's turn.

    A turn that is cut by its budget or empty is the policy's own doing and stays what it is:
    another try would choose the policy's best turn, not its turn.

    Raises:
        CallFault: If it is no chat completion, or a content filter stopped it.
    """
    try:
        choice = response.choices[0]
        text, finish = choice.message.content or "", choice.finish_reason
        text.encode()  # half a surrogate pair could not be sent on
    except (AttributeError, IndexError, TypeError, UnicodeEncodeError):
        raise CallFault("malformed", "the answer is no chat completion") from None
    if finish == "content_filter":
        raise CallFault("filtered", "the endpoint's content filter stopped the answer")
    return PolicyTurn(text, finished=finish != "length")
