"""The embedded engine's speed, as a ratio to Hugging Face `generate` in the same run.

    python benchmarks/engine.py [--model FOLDER] [--repeats 5] [--dtype float32]
                                [--json FILE] [--continuous]

For 1, 8 and 32 sequences that start together, and for 16 that arrive spread over a second
(`generate` then takes what has arrived whenever it is free). Each repeat runs both, one after the
other, so that a machine's moods hit both; medians and the ratio's quartiles are told.
`--continuous` also runs transformers' own continuous batching, which has no seed per request.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from recipe.collabllm.hardware import multiplies_bfloat16
from serving.async_engine import AsyncEngine
from serving.cpu_engine import CpuEngine
from serving.generation import SamplingParams
from serving.smollm2 import make_smollm2

PROMPT, NEW = 64, 64


def prompts(count: int, seed: int) -> torch.Tensor:
    """Return random prompts, [count, PROMPT]: nothing to share between them."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(5, 40_000, (count, PROMPT), generator=generator)


@torch.inference_mode()
def with_generate(model: PreTrainedModel, batch: torch.Tensor) -> None:
    """Sample NEW tokens for a batch with transformers."""
    model.generate(
        batch,
        attention_mask=torch.ones_like(batch),
        max_new_tokens=NEW,
        min_new_tokens=NEW,
        do_sample=True,
        top_k=0,
    )


async def with_engine(engine: AsyncEngine, batch: torch.Tensor, spread_s: float = 0.0) -> None:
    """Sample NEW tokens for each prompt, arrivals spread evenly over `spread_s`."""

    async def one(i: int) -> None:
        await asyncio.sleep(spread_s * i / len(batch))
        await engine.generate(batch[i].tolist(), SamplingParams(max_tokens=NEW, seed=i))

    await engine.clear_prefixes()
    await asyncio.gather(*(one(i) for i in range(len(batch))))


def spread_with_generate(model: PreTrainedModel, batch: torch.Tensor, spread_s: float) -> None:
    """Serve arrivals with `generate`: whenever it is free it takes all that has arrived."""
    began = time.perf_counter()
    served = 0
    while served < len(batch):
        arrived = min(len(batch), int((time.perf_counter() - began) / spread_s * len(batch)) + 1)
        if arrived == served:
            time.sleep(0.005)
            continue
        with_generate(model, batch[served:arrived])
        served = arrived


def continuous_batching(model: PreTrainedModel) -> Callable[[torch.Tensor], None]:
    """Return what runs a batch with transformers' own continuous batching."""
    from transformers import ContinuousBatchingConfig, GenerationConfig

    settings = ContinuousBatchingConfig(block_size=32, num_blocks=256, max_batch_tokens=512)
    generation = GenerationConfig(do_sample=True, top_k=0, max_new_tokens=NEW, eos_token_id=-1)

    def run(batch: torch.Tensor) -> None:
        model.generate_batch(
            [row.tolist() for row in batch],
            generation_config=generation,
            continuous_batching_config=settings,
            progress_bar=False,
        )

    return run


def seconds(work: Callable[[], None]) -> float:
    """Return how long `work` takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def compare(
    name: str, tokens: int, repeats: int, contenders: dict[str, Callable[[int], None]]
) -> dict[str, object]:
    """Run contenders in turn and return medians and ratios to the first."""
    times: dict[str, list[float]] = {who: [] for who in contenders}
    for repeat in range(repeats + 1):
        for who, work in contenders.items():
            took = seconds(lambda work=work, repeat=repeat: work(repeat))
            if repeat:  # the first warms up
                times[who].append(took)
    reference = next(iter(contenders))
    result: dict[str, object] = {"case": name}
    for who, taken in times.items():
        result[f"{who}_tokens_per_s"] = round(tokens / statistics.median(taken), 1)
        if who != reference:
            ratios = sorted(r / t for r, t in zip(times[reference], taken, strict=True))
            result[f"{who}_ratio"] = round(statistics.median(ratios), 2)
            result[f"{who}_ratio_quartiles"] = [
                round(r, 2) for r in (ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4])
            ]
    print(json.dumps(result), flush=True)
    return result


def main() -> None:
    """Run the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=Path("outputs/models/SmolLM2-135M-Instruct"))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--dtype", default="bfloat16" if multiplies_bfloat16() else "float32")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--continuous", action="store_true")
    options = parser.parse_args()
    folder = make_smollm2(options.model)
    dtype = getattr(torch, options.dtype)
    load = lambda: AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)  # noqa: E731
    print(json.dumps({"dtype": options.dtype, "threads": torch.get_num_threads()}), flush=True)
    plain = load().eval()
    engine = AsyncEngine(CpuEngine(load(), max_length=512))
    peer = continuous_batching(load()) if options.continuous else None
    loop = asyncio.new_event_loop()
    results = []
    for count in (1, 8, 32):
        contenders: dict[str, Callable[[int], None]] = {
            "generate": lambda r, n=count: with_generate(plain, prompts(n, r)),
            "engine": lambda r, n=count: loop.run_until_complete(
                with_engine(engine, prompts(n, r))
            ),
        }
        if peer:
            contenders["continuous"] = lambda r, n=count: peer(prompts(n, r))
        results.append(compare(f"{count} together", count * NEW, options.repeats, contenders))
    spread = {
        "generate": lambda r: spread_with_generate(plain, prompts(16, r), 1.0),
        "engine": lambda r: loop.run_until_complete(with_engine(engine, prompts(16, r), 1.0)),
    }
    results.append(compare("16 over a second", 16 * NEW, options.repeats, spread))
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
