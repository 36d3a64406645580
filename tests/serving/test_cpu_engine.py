"""The engine against Hugging Face: same tokens, same numbers, whatever joins or leaves."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from serving.cpu_engine import CpuEngine
from serving.generation import FinishReason, Generation, SamplingParams

TINY = {"vocab_size": 97, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2}


def llama(seed: int = 0) -> PreTrainedModel:
    torch.manual_seed(seed)
    return LlamaForCausalLM(LlamaConfig(**TINY, **HEADS)).eval()


def qwen2() -> PreTrainedModel:
    torch.manual_seed(0)
    return Qwen2ForCausalLM(Qwen2Config(**TINY, **HEADS)).eval()


def neox() -> PreTrainedModel:
    torch.manual_seed(0)
    return GPTNeoXForCausalLM(GPTNeoXConfig(**TINY, num_attention_heads=4)).eval()


def run(engine: CpuEngine, *requests: tuple[list[int], SamplingParams]) -> list[Generation]:
    """Add requests at once, step until all are done."""
    done: dict[int, Generation] = {}
    for i, (prompt, params) in enumerate(requests):
        engine.add(str(i), prompt, params, lambda g, i=i: done.__setitem__(i, g))  # type: ignore[misc]
    while engine.has_work:
        engine.step()
    return [done[i] for i in range(len(requests))]


def greedy(tokens: int) -> SamplingParams:
    return SamplingParams(tokens, temperature=0)


def reference(model: PreTrainedModel, prompt: list[int], tokens: int) -> list[int]:
    """Return what greedy decoding without a cache gives."""
    ids = torch.tensor([prompt])
    with torch.no_grad():
        for _ in range(tokens):
            ids = torch.cat([ids, model(ids).logits[:, -1:].argmax(-1)], dim=1)
    return list(ids[0, len(prompt) :].tolist())


def prompts(count: int, shared: int = 0) -> list[list[int]]:
    torch.manual_seed(1)
    head = torch.randint(1, 97, (shared,)).tolist()
    return [head + torch.randint(1, 97, (4 + 3 * i,)).tolist() for i in range(count)]


@pytest.mark.parametrize("make", [llama, qwen2, neox])
def test_sequences_of_different_length_decode_together_as_they_would_alone(make) -> None:  # type: ignore[no-untyped-def]
    expected = [reference(make(), p, 9) for p in prompts(5)]
    got = run(CpuEngine(make(), max_length=64), *((p, greedy(9)) for p in prompts(5)))
    assert [list(g.token_ids) for g in got] == expected


def test_sequences_join_and_leave_mid_way() -> None:
    engine = CpuEngine(llama(), max_length=64)
    done: dict[int, Generation] = {}
    lengths = [12, 3, 7, 5]
    for i, (prompt, tokens) in enumerate(zip(prompts(4), lengths, strict=True)):
        engine.add(str(i), prompt, greedy(tokens), lambda g, i=i: done.__setitem__(i, g))  # type: ignore[misc]
        engine.step()
        engine.step()
    while engine.has_work:
        engine.step()
    for i, (prompt, tokens) in enumerate(zip(prompts(4), lengths, strict=True)):
        assert list(done[i].token_ids) == reference(llama(), prompt, tokens)


def test_long_prompts_are_computed_in_chunks_with_the_same_result() -> None:
    long = [*prompts(3, shared=0), prompts(1, shared=40)[0]]
    whole = run(CpuEngine(llama(), max_length=64), *((p, greedy(6)) for p in long))
    chunked = run(
        CpuEngine(llama(), max_length=64, prefill_tokens=5), *((p, greedy(6)) for p in long)
    )
    assert [g.token_ids for g in whole] == [g.token_ids for g in chunked]


def test_a_shared_prompt_is_computed_once_for_its_n_replies() -> None:
    engine = CpuEngine(llama(), max_length=64)
    prompt = prompts(1, shared=24)[0]
    got = run(engine, *((prompt, SamplingParams(4, seed=i)) for i in range(8)))
    assert engine.counters.prefilled_tokens == len(prompt) - 1
    assert sum(g.shared_tokens for g in got) == 7 * (len(prompt) - 1)


def test_four_futures_of_a_reply_share_the_prefix_it_left_behind() -> None:
    engine = CpuEngine(llama(), max_length=128)
    prompt = prompts(1, shared=24)[0]
    (reply,) = run(engine, (prompt, greedy(10)))
    before = engine.counters.prefilled_tokens
    said = [prompt + list(reply.token_ids) + [50 + k, 60, 61] for k in range(4)]
    run(engine, *((s, greedy(5)) for s in said))
    # Each future computes the reply's last token (a sequence ends before its keys are computed)
    # and its own words but the last; prompt and reply are never computed again.
    assert engine.counters.prefilled_tokens - before == 4 * (1 + 2)
    alone = CpuEngine(llama(), max_length=128, prefix_bytes=0)
    assert [g.token_ids for g in run(alone, *((s, greedy(5)) for s in said))] == [
        tuple(reference(llama(), s, 5)) for s in said
    ]


def test_a_request_gets_the_same_tokens_alone_and_in_company() -> None:
    params = SamplingParams(12, seed=5)
    (alone,) = run(CpuEngine(llama(), max_length=64), (prompts(1)[0], params))
    company = [(p, SamplingParams(20, seed=90 + i)) for i, p in enumerate(prompts(6))]
    together = run(CpuEngine(llama(), max_length=64), (prompts(1)[0], params), *company)
    assert together[0].token_ids == alone.token_ids


def test_different_seeds_give_different_tokens() -> None:
    got = run(
        CpuEngine(llama(), max_length=64),
        *((prompts(1)[0], SamplingParams(12, seed=i)) for i in range(4)),
    )
    assert len({g.token_ids for g in got}) == 4


def test_log_probabilities_are_those_of_the_model() -> None:
    prompt = prompts(1)[0]
    (got,) = run(
        CpuEngine(llama(), max_length=64), (prompt, SamplingParams(10, temperature=0.7, seed=3))
    )
    ids = torch.tensor([[*prompt, *got.token_ids]])
    with torch.no_grad():
        log_probs = torch.log_softmax(llama()(ids).logits[0, len(prompt) - 1 : -1] / 0.7, -1)
    expected = log_probs.gather(1, torch.tensor(got.token_ids)[:, None])[:, 0]
    assert torch.allclose(torch.tensor(got.log_probs), expected, atol=1e-5)


def test_a_stop_token_ends_a_generation_and_is_its_last() -> None:
    prompt = prompts(1)[0]
    third = reference(llama(), prompt, 3)[2]
    params = SamplingParams(20, temperature=0, stop_token_ids=frozenset({third}))
    (got,) = run(CpuEngine(llama(), max_length=64), (prompt, params))
    assert got.finish_reason is FinishReason.STOP and got.token_ids[-1] == third


def test_the_budget_ends_a_generation() -> None:
    (got,) = run(CpuEngine(llama(), max_length=64), (prompts(1)[0], greedy(4)))
    assert got.finish_reason is FinishReason.LENGTH and len(got.token_ids) == 4


def test_the_context_bounds_the_budget() -> None:
    prompt = prompts(1)[0]
    (got,) = run(CpuEngine(llama(), max_length=len(prompt) + 3), (prompt, greedy(50)))
    assert len(got.token_ids) == 3


def test_abort_ends_one_request_with_what_it_has() -> None:
    engine = CpuEngine(llama(), max_length=64)
    done: dict[str, Generation] = {}
    for name, prompt in zip("ab", prompts(2), strict=True):
        engine.add(name, prompt, greedy(8), lambda g, n=name: done.__setitem__(n, g))  # type: ignore[misc]
    engine.step()
    engine.step()
    assert engine.abort("a") and not engine.abort("a") and not engine.abort("c")
    assert done["a"].finish_reason is FinishReason.ABORTED and len(done["a"].token_ids) == 2
    while engine.has_work:
        engine.step()
    assert list(done["b"].token_ids) == reference(llama(), prompts(2)[1], 8)


def test_new_weights_change_what_follows_and_drop_cached_prefixes() -> None:
    prompt = prompts(1, shared=20)[0]
    engine = CpuEngine(llama(), max_length=64)
    run(engine, (prompt, greedy(5)))
    engine.update_weights(llama(seed=7).named_parameters())
    before = engine.counters.prefilled_tokens
    (got,) = run(engine, (prompt, greedy(5)))
    assert list(got.token_ids) == reference(llama(seed=7), prompt, 5)
    assert engine.counters.prefilled_tokens - before == len(prompt) - 1


def test_a_running_sequence_goes_on_with_new_weights_all_through() -> None:
    prompt = prompts(1)[0]
    engine = CpuEngine(llama(), max_length=64)
    done: list[Generation] = []
    engine.add("a", prompt, greedy(6), done.append)
    engine.step()
    engine.update_weights(llama(seed=7).named_parameters())
    while engine.has_work:
        engine.step()
    first = done[0].token_ids[0]
    assert list(done[0].token_ids[1:]) == reference(llama(seed=7), [*prompt, first], 5)


def test_weights_that_do_not_fit_are_refused() -> None:
    engine = CpuEngine(llama(), max_length=64)
    with pytest.raises(ValueError, match="no such parameter"):
        engine.update_weights([("nope", torch.zeros(1))])
    with pytest.raises(ValueError, match="weights left out"):
        engine.update_weights([])


def test_more_requests_than_rows_wait_their_turn() -> None:
    engine = CpuEngine(llama(), max_length=64, max_sequences=2)
    got = run(engine, *((p, greedy(6)) for p in prompts(5)))
    assert [list(g.token_ids) for g in got] == [reference(llama(), p, 6) for p in prompts(5)]


def test_memory_bounds_how_many_run_at_once() -> None:
    model = llama()
    per_token = 2 * 2 * 2 * 8 * 4  # keys and values, layers, key heads, dim, bytes
    engine = CpuEngine(model, max_length=32, cache_bytes=per_token * 32 * 2)
    got = run(engine, *((p, greedy(6)) for p in prompts(4)))
    assert [list(g.token_ids) for g in got] == [reference(llama(), p, 6) for p in prompts(4)]
    with pytest.raises(ValueError, match="raise cache_bytes"):
        CpuEngine(model, max_length=64, cache_bytes=per_token * 32)


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [([], "is empty"), ([1] * 64, "leaves no room"), ([1, 97], "outside 0..96"), ([-1], "outside")],
)
def test_a_prompt_that_cannot_be_run_is_refused(prompt: list[int], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        CpuEngine(llama(), max_length=64).add("a", prompt, greedy(1), lambda g: None)


def test_a_model_that_does_not_see_the_whole_context_is_refused() -> None:
    config = MistralConfig(**TINY, **HEADS, sliding_window=16)
    with pytest.raises(ValueError, match="attends within 16 tokens"):
        CpuEngine(MistralForCausalLM(config), max_length=64)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_embedded_models_log_probabilities_agree_with_its_own(
    smollm2: Path, dtype: torch.dtype
) -> None:
    model = AutoModelForCausalLM.from_pretrained(smollm2, dtype=dtype)
    torch.manual_seed(0)
    texts = [torch.randint(5, 40_000, (30 + 11 * i,)).tolist() for i in range(4)]
    got = run(
        CpuEngine(model, max_length=256),
        *((t, SamplingParams(24, seed=i)) for i, t in enumerate(texts)),
    )
    apart = AutoModelForCausalLM.from_pretrained(smollm2, dtype=dtype)
    differences = []
    for text, generation in zip(texts, got, strict=True):
        ids = torch.tensor([[*text, *generation.token_ids]])
        with torch.no_grad():
            log_probs = torch.log_softmax(apart(ids).logits[0, len(text) - 1 : -1].float(), -1)
        own = log_probs.gather(1, torch.tensor(generation.token_ids)[:, None])[:, 0]
        differences.append((own - torch.tensor(generation.log_probs)).abs())
    assert torch.cat(differences).mean() < (1e-4 if dtype is torch.float32 else 5e-2)
