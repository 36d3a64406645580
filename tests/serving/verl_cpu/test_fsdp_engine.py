"""verl's own actor on a CPU: the engine's log-probabilities are the trainer's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("dtype", "limit"), [("float32", 1e-4), ("bfloat16", 5e-2)])
def test_engine_and_actor_agree_on_the_same_tokens(smollm2: Path, dtype: str, limit: float) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.serving.verl_cpu.actor_log_probs", str(smollm2), dtype],
        env={**os.environ, "VERL_PLATFORM": "cpu"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    print(told)
    assert told["tokens"] > 200
    assert told["engine_actor"] < limit
    assert told["engine_verl"] < limit
    assert told["shared_apart"] < limit
    assert told["entropy_shared_apart"] < 2 * limit


def test_nothing_of_the_plug_in_runs_when_a_gpu_platform_is_chosen() -> None:
    code = (
        "import sys, verl, verl.workers.rollout.base as base\n"
        "assert ('hf', 'async') not in base._ROLLOUT_REGISTRY\n"
        "loaded = [m for m in sys.modules if m.startswith('serving.verl_cpu')]\n"
        "assert loaded in ([], ['serving.verl_cpu', 'serving.verl_cpu.plugin']), loaded\n"
    )
    for platform in ("nvidia", ""):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "VERL_PLATFORM": platform},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-2000:]


def test_a_plug_in_that_fails_to_load_says_so(tmp_path: Path) -> None:
    """verl itself logs it at DEBUG only."""
    code = "import sys, types\nsys.modules['serving.verl_cpu.platform'] = None\nimport verl\n"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "VERL_PLATFORM": "cpu"},
        capture_output=True,
        text=True,
    )
    assert "the verl CPU plug-in failed to load" in done.stderr and "Traceback" in done.stderr
