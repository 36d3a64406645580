"""Sampling: each row by its own parameters, the right distribution, the trainer's numbers."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from serving.generation import SamplingParams
from serving.token_sampling import sample_tokens

LOGITS = torch.tensor([[0.0, 1.0, 2.0, -1.0, 0.5]])


def draw(
    params: SamplingParams, uniform: float, logits: torch.Tensor = LOGITS
) -> tuple[int, float]:
    tokens, log_probs = sample_tokens(logits, [params], [uniform])
    return tokens[0], log_probs[0]


def test_temperature_zero_takes_the_likeliest_whatever_the_draw() -> None:
    assert {draw(SamplingParams(1, temperature=0), u)[0] for u in (0.0, 0.5, 0.999)} == {2}


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_frequencies_are_those_of_the_tempered_distribution(temperature: float) -> None:
    rng, n = random.Random(0), 4000
    tokens, _ = sample_tokens(
        LOGITS.expand(n, -1),
        [SamplingParams(1, temperature=temperature)] * n,
        [rng.random() for _ in range(n)],
    )
    seen = torch.bincount(torch.tensor(tokens), minlength=5) / n
    expected = torch.softmax(LOGITS[0] / temperature, -1)
    assert (seen - expected).abs().max() < 0.03


@given(st.floats(0, 0.999999), st.floats(0.1, 3))
def test_a_log_probability_is_that_of_the_tempered_softmax(
    uniform: float, temperature: float
) -> None:
    token, log_prob = draw(SamplingParams(1, temperature=temperature), uniform)
    expected = torch.log_softmax(LOGITS[0] / temperature, -1)[token]
    assert log_prob == pytest.approx(float(expected), abs=1e-5)


@given(st.floats(0, 0.999999), st.integers(1, 5))
def test_top_k_draws_among_the_k_likeliest(uniform: float, k: int) -> None:
    token, _ = draw(SamplingParams(1, top_k=k), uniform)
    assert token in LOGITS[0].topk(k).indices


@given(st.floats(0, 0.999999), st.floats(0.05, 1))
def test_top_p_draws_within_the_nucleus(uniform: float, p: float) -> None:
    probabilities, order = torch.softmax(LOGITS[0], -1).sort(descending=True)
    nucleus = order[(probabilities.cumsum(0) - probabilities) < p]
    assert draw(SamplingParams(1, top_p=p), uniform)[0] in nucleus


def test_rows_keep_their_own_parameters() -> None:
    tokens, _ = sample_tokens(
        LOGITS.expand(3, -1),
        [SamplingParams(1, temperature=0), SamplingParams(1, top_k=1), SamplingParams(1)],
        [0.99, 0.99, 0.0],
    )
    assert tokens == [2, 2, 0]


@given(st.integers(0, 2**31), st.floats(0, 0.9999), st.integers(2, 1500))
def test_a_draw_inverts_the_cumulative_distribution(seed: int, uniform: float, size: int) -> None:
    logits = 3 * torch.randn(1, size, generator=torch.Generator().manual_seed(seed))
    token, _ = draw(SamplingParams(1), uniform, logits)
    probabilities = torch.softmax(logits[0].double(), -1)
    through = float(probabilities[: token + 1].sum())
    assert through - float(probabilities[token]) - 1e-4 <= uniform <= through + 1e-4


@given(st.integers(0, 2**31), st.sampled_from([0.0, 0.5, 1 - 2**-24, 1 - 1e-12]))
def test_a_token_without_probability_is_never_drawn(seed: int, uniform: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(1, 700, generator=generator)
    logits[torch.rand(1, 700, generator=generator) < 0.9] = -torch.inf
    logits[0, seed % 700] = 0.0
    assert logits[0, draw(SamplingParams(1), uniform, logits)[0]] > -torch.inf


def test_the_end_of_the_distribution_is_still_a_token() -> None:
    assert draw(SamplingParams(1), 1 - 1e-9)[0] == 4


@pytest.mark.parametrize(
    "bad", [{"max_tokens": 0}, {"temperature": -1}, {"top_p": 0}, {"top_p": 1.1}, {"top_k": -2}]
)
def test_parameters_out_of_range_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError):
        SamplingParams(**{"max_tokens": 1, **bad})  # type: ignore[arg-type]
