"""Sequences that share prompts, computed once, give the same numbers as apart."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from serving.verl_cpu.shared_prompt import lay_out
from tests.serving.test_cpu_engine import llama

tokens = st.lists(st.integers(1, 96), min_size=1, max_size=6)


def together(
    model: torch.nn.Module, prompts: list[list[int]], replies: list[list[int]]
) -> torch.Tensor:
    batch = lay_out([torch.tensor(p) for p in prompts], [torch.tensor(r) for r in replies], pad=0)
    mask = torch.zeros(batch.hidden.shape).masked_fill_(batch.hidden, -torch.inf)[:, None]
    logits = model(
        batch.input_ids,
        attention_mask=mask,
        position_ids=batch.position_ids,
        logits_to_keep=batch.kept_columns,
    ).logits
    rows = torch.log_softmax(logits.flatten(0, 1)[batch.predictors], -1)
    return rows.gather(1, batch.labels[:, None])[:, 0]


def apart(
    model: torch.nn.Module, prompts: list[list[int]], replies: list[list[int]]
) -> torch.Tensor:
    parts = []
    for prompt, reply in zip(prompts, replies, strict=True):
        logits = model(torch.tensor([[*prompt, *reply]])).logits[0, len(prompt) - 1 : -1]
        parts.append(torch.log_softmax(logits, -1).gather(1, torch.tensor(reply)[:, None])[:, 0])
    return torch.cat(parts)


@settings(max_examples=25, deadline=None)
@given(st.lists(tokens, min_size=1, max_size=3), st.data())
def test_log_probabilities_are_the_same_together_and_apart(
    distinct: list[list[int]], data: st.DataObject
) -> None:
    prompts = data.draw(st.lists(st.sampled_from(distinct), min_size=1, max_size=6))
    replies = [data.draw(tokens) for _ in prompts]
    model = llama()
    with torch.no_grad():
        assert torch.allclose(
            together(model, prompts, replies), apart(model, prompts, replies), atol=1e-4
        )


def test_gradients_are_the_same_together_and_apart() -> None:
    prompts = [[5, 6, 7], [8, 9], [5, 6, 7], [5, 6, 7]]
    replies = [[1, 2, 3], [4], [5, 6], [7, 8, 9, 10]]
    weights = torch.randn(10, generator=torch.Generator().manual_seed(0))
    gradients = []
    for compute in (together, apart):
        model = llama()
        (compute(model, prompts, replies) * weights).sum().backward()
        gradients.append({n: p.grad for n, p in model.named_parameters()})
    for name, gradient in gradients[0].items():
        assert torch.allclose(gradient, gradients[1][name], atol=1e-4), name


def test_a_shared_prompt_takes_one_row() -> None:
    prompt = torch.arange(1, 21)
    batch = lay_out([prompt] * 8, [torch.tensor([1, 2, 3])] * 8, pad=0)
    assert batch.input_ids.shape == (1, 20 + 8 * 3)
