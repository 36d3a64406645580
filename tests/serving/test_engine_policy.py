"""A model folder as a policy, without verl: seeds, budgets, several conversations at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from interaction.conversation import Conversation, StopReason
from interaction.policy import PolicyTurn
from serving.async_engine import EngineClosed
from serving.engine_policy import EnginePolicy, engine_policy

FRANCE = Conversation().add("user", "What is the capital of France?")
TRIP = Conversation().add("user", "I want to go on a trip.")


@pytest.fixture(scope="module")
def policy(smollm2: Path) -> Iterator[EnginePolicy]:
    with engine_policy(smollm2, max_length=256) as loaded:
        yield loaded
    with pytest.raises(EngineClosed):
        ask(loaded, TRIP, 4, 0)


def ask(policy: EnginePolicy, said: Conversation, max_tokens: int, seed: int) -> PolicyTurn:
    return asyncio.run(policy.reply(said, max_tokens, seed))


def test_the_same_seed_gives_the_same_reply_also_among_others(policy: EnginePolicy) -> None:
    async def three() -> list[PolicyTurn]:
        asked = ((TRIP, 1), (FRANCE, 1), (TRIP, 2))
        return await asyncio.gather(*(policy.reply(said, 8, seed) for said, seed in asked))

    first, _, other = asyncio.run(three())
    again = ask(policy, TRIP, 8, 1)
    assert (first.text, first.token_ids) == (again.text, again.token_ids)
    assert other.token_ids != first.token_ids


def test_a_greedy_reply_is_finished_and_right(policy: EnginePolicy) -> None:
    greedy = EnginePolicy(policy.engine, policy.tokens, temperature=0)
    turn = ask(greedy, FRANCE, 48, 0)
    assert "Paris" in turn.text and turn.fault is None
    assert len(turn.log_probs) == len(turn.token_ids)


def test_a_reply_cut_by_its_budget_has_fault_length(policy: EnginePolicy) -> None:
    turn = ask(policy, TRIP, 3, 1)
    assert turn.fault is StopReason.LENGTH and len(turn.token_ids) == 3


def test_a_conversation_that_fills_the_context_is_refused(policy: EnginePolicy) -> None:
    with pytest.raises(ValueError, match="leaves no room"):
        ask(policy, Conversation().add("user", "trip " * 300), 8, 0)


def test_sampling_out_of_range_is_refused(policy: EnginePolicy) -> None:
    with pytest.raises(ValueError, match="top_p"):
        EnginePolicy(policy.engine, policy.tokens, top_p=0.0)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"config\.json"), engine_policy(tmp_path):
        pass
