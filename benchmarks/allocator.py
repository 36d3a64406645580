"""What keeping memory does for training on a CPU: the same step with and without.

    python benchmarks/allocator.py [--repeats 5]

Runs a forward and backward pass of the embedded model on 16 sequences of 96 tokens in two kinds
of processes, in turn: with the allocator settings of recipe/collabllm/environment.py and with
glibc's defaults. Tells median seconds and their ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys

from recipe.collabllm.hardware import multiplies_bfloat16

STEP = """
import sys, time, torch
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained(
    sys.argv[1], dtype=getattr(torch, sys.argv[2]), attn_implementation="eager").train()
ids = torch.randint(5, 40_000, (16, 96), generator=torch.Generator().manual_seed(0))
times = []
for _ in range(4):
    began = time.perf_counter()
    logits = model(ids, use_cache=False).logits.float()
    torch.log_softmax(logits, -1).gather(-1, ids[..., None]).mean().backward()
    model.zero_grad()
    times.append(time.perf_counter() - began)
print(sorted(times[1:])[1])
"""
KEEPING = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(16 << 30),
    "MALLOC_ARENA_MAX": "1",
}


def step_seconds(model: str, dtype: str, variables: dict[str, str]) -> float:
    """Return the median time of a step in a process with these variables."""
    plain = {k: v for k, v in os.environ.items() if k not in KEEPING}
    told = subprocess.run(
        [sys.executable, "-c", STEP, model, dtype],
        env={**plain, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(told.stdout)


def main() -> None:
    """Run both kinds in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="outputs/models/SmolLM2-135M-Instruct")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    dtype = "bfloat16" if multiplies_bfloat16() else "float32"
    pairs = [
        (step_seconds(options.model, dtype, {}), step_seconds(options.model, dtype, KEEPING))
        for _ in range(options.repeats)
    ]
    result: dict[str, object] = {
        "dtype": dtype,
        "default_s": round(statistics.median(p[0] for p in pairs), 2),
        "keeping_s": round(statistics.median(p[1] for p in pairs), 2),
        "ratio": round(statistics.median(p[0] / p[1] for p in pairs), 2),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
