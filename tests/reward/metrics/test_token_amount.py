"""`token_amount`: whose tokens are counted, and that the cost is bounded."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interaction.conversation import Conversation
from interaction.task import Goal, Task
from reward.metric import MetricContext
from reward.metrics.token_amount import TokenAmount
from reward.registry import make_metric

TALK = (
    Conversation()
    .add("system", "one")
    .add("user", "one two three")
    .add("assistant", "<think>one two</think> one two")
    .add("user", "one two three four")
    .add("assistant", "one two three")
    .add("user", "one")
)


def score(metric: TokenAmount, talk: Conversation, given: int = 0) -> float:
    task = Task("t", "x", Goal("g"))
    return asyncio.run(metric.score(task, talk, MetricContext(given=given)))


def test_what_the_user_reads_and_writes_is_counted_after_what_was_given() -> None:
    assert score(TokenAmount(lam=0.01), TALK, given=2) == pytest.approx(-0.01 * (2 + 4 + 3 + 1))
    assert score(TokenAmount(lam=0.01), TALK, given=4) == pytest.approx(-0.01 * (3 + 1))
    assert score(TokenAmount(lam=0.01), TALK) == pytest.approx(-0.01 * (3 + 2 + 4 + 3 + 1))


def test_of_the_policy_alone_its_turns_count_as_generated() -> None:
    assert score(TokenAmount(lam=0.01, tokens="policy"), TALK, given=2) == pytest.approx(-0.07)
    assert score(TokenAmount(lam=0.01, tokens="policy"), TALK, given=4) == pytest.approx(-0.03)


def test_tokens_are_counted_with_the_policys_tokenizer() -> None:
    talk = Conversation().add("user", "hi").add("assistant", "abc").add("user", "de")
    context = MetricContext(given=1, count_tokens=len)
    task = Task("t", "x", Goal("g"))
    assert asyncio.run(TokenAmount(lam=0.01).score(task, talk, context)) == pytest.approx(-0.05)


def test_the_cap_is_reached_conversation_by_conversation() -> None:
    assert score(TokenAmount(lam=0.5), TALK) == -1


def test_no_words_cost_nothing() -> None:
    assert score(TokenAmount(), Conversation()) == 0


@pytest.mark.parametrize("lam", [0, -1, float("nan"), float("inf")])
def test_a_cost_per_token_that_is_no_cost_is_refused(lam: float) -> None:
    with pytest.raises(ValueError, match="lam must be greater than 0"):
        TokenAmount(lam=lam)


def test_an_unknown_choice_of_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="tokens must be read_and_written or policy"):
        make_metric("token_amount", {"tokens": "all"})


@given(
    lam=st.floats(1e-9, 1e9),
    turns=st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.text(max_size=80))),
    given_=st.integers(0, 5),
)
def test_any_conversation_is_scored_within_range(
    lam: float, turns: list[tuple[str, str]], given_: int
) -> None:
    talk = Conversation.from_dicts([{"role": role, "content": text} for role, text in turns])
    for metric in (TokenAmount(lam=lam), TokenAmount(lam=lam, tokens="policy")):
        assert -1 <= score(metric, talk, given_) <= 0
