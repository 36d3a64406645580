"""The engine behind asyncio: many callers, cancellation, weights between steps, breakage."""

from __future__ import annotations

import asyncio

import pytest

from serving.async_engine import AsyncEngine, EngineClosed
from serving.cpu_engine import CpuEngine
from serving.generation import FinishReason, SamplingParams
from tests.serving.test_cpu_engine import greedy, llama, prompts, reference


def engine() -> AsyncEngine:
    return AsyncEngine(CpuEngine(llama(), max_length=256))


def test_many_callers_at_once_get_their_own_answers() -> None:
    async def ask() -> list[tuple[int, ...]]:
        own = engine()
        generations = await asyncio.gather(*(own.generate(p, greedy(6)) for p in prompts(12)))
        own.close()
        return [g.token_ids for g in generations]

    assert asyncio.run(ask()) == [tuple(reference(llama(), p, 6)) for p in prompts(12)]


def test_a_cancelled_caller_takes_its_request_along() -> None:
    async def ask() -> dict[FinishReason, int]:
        own = engine()
        task = asyncio.create_task(own.generate(prompts(1)[0], greedy(200)))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await own.generate(prompts(1)[0], greedy(2))
        own.close()
        return own.counters.finished

    finished = asyncio.run(ask())
    assert finished[FinishReason.ABORTED] == 1 and finished[FinishReason.LENGTH] == 1


def test_abort_all_hands_everybody_what_they_have() -> None:
    async def ask() -> list[FinishReason]:
        own = engine()
        tasks = [asyncio.create_task(own.generate(p, greedy(200))) for p in prompts(3)]
        await asyncio.sleep(0.05)
        assert await own.abort_all() == 3
        generations = await asyncio.gather(*tasks)
        own.close()
        return [g.finish_reason for g in generations]

    assert asyncio.run(ask()) == [FinishReason.ABORTED] * 3


def test_weights_change_between_requests() -> None:
    async def ask() -> tuple[int, ...]:
        own = engine()
        await own.generate(prompts(1)[0], greedy(4))
        await own.update_weights(llama(seed=7).named_parameters())
        generation = await own.generate(prompts(1)[0], greedy(4))
        own.close()
        return generation.token_ids

    assert asyncio.run(ask()) == tuple(reference(llama(seed=7), prompts(1)[0], 4))


def test_a_request_that_cannot_be_run_fails_alone() -> None:
    async def ask() -> None:
        own = engine()
        good = asyncio.create_task(own.generate(prompts(1)[0], greedy(4)))
        with pytest.raises(ValueError, match="is empty"):
            await own.generate([], greedy(1))
        assert (await good).finish_reason is FinishReason.LENGTH
        own.close()

    asyncio.run(ask())


def test_an_engine_that_breaks_fails_everybody_instead_of_hanging() -> None:
    async def ask() -> None:
        inner = CpuEngine(llama(), max_length=64)
        inner.step = lambda: 1 / 0  # type: ignore[method-assign]
        own = AsyncEngine(inner)
        waiting = [own.generate(p, greedy(3)) for p in prompts(3)]
        results = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 10)
        assert all(isinstance(result, EngineClosed) for result in results)
        with pytest.raises(EngineClosed):
            await own.generate(prompts(1)[0], greedy(1))

    asyncio.run(ask())


def test_a_closed_engine_says_so() -> None:
    async def ask() -> None:
        own = engine()
        own.close()
        with pytest.raises(EngineClosed):
            await own.generate(prompts(1)[0], SamplingParams(1))

    asyncio.run(ask())
