"""What a person sees: a line a step, and a terminal that is given back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from recipe.collabllm.progress import Seen, describe, followed, validation_rewards

STEP = {
    "reward/mr/mean": 0.25,
    "reward/ask_rate": 0.5,
    "reward/floored_replies": 0.25,
    "timing_s/step": 12.0,
}


def test_a_step_is_one_line_with_reward_asking_pace_and_time_left() -> None:
    (line,) = describe(10, 40, STEP, Seen())
    assert line == "step  10/40   MR +0.25   asks  50%   usable  75%    12.0 s   about 6 min left"


def test_the_last_step_is_done() -> None:
    (line,) = describe(40, 40, STEP, Seen())
    assert line.endswith("done")


def test_a_validation_is_a_line_a_source() -> None:
    data = {"val-core/planning/reward/mean@1": 0.5, "val-aux/planning/asks/mean@1": 1.0}
    assert validation_rewards(data) == {"planning": 0.5}
    (line,) = describe(0, 40, data, Seen())
    assert "held-out planning" in line and "MR +0.50" in line


def test_a_growing_file_is_told_line_by_line_and_half_lines_wait(tmp_path: Path) -> None:
    file, told = tmp_path / "metrics.jsonl", []  # type: ignore[var-annotated]
    with followed(file, 40, told.append):
        entry = json.dumps({"step": 1, "data": STEP})
        file.write_text(entry + "\n" + entry[:10])
        time.sleep(1.2)
        assert len(told) == 1
        file.write_text(entry + "\n" + entry + "\n")
    assert len(told) == 2


def test_output_of_this_process_and_its_children_goes_to_the_log(tmp_path: Path) -> None:
    code = (
        "import os, sys\nfrom pathlib import Path\n"
        "from recipe.collabllm.progress import quiet_output\n"
        "print('before')\n"
        "with quiet_output(Path(sys.argv[1])) as tell:\n"
        "    print('hidden'); os.system('echo child'); tell('shown')\n"
        "print('after')\n"
    )
    log = tmp_path / "logs" / "train.log"
    done = subprocess.run(
        [sys.executable, "-c", code, str(log)], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert done.stdout.split() == ["before", "shown", "after"]
    assert log.read_text().split() == ["hidden", "child"]


def test_a_cost_at_its_cap_is_warned_of_once() -> None:
    seen, data = Seen(), {**STEP, "reward/token_amount/at_cap": 0.25}
    lines = [*describe(1, 40, data, seen), *describe(2, 40, data, seen)]
    (warning,) = [line for line in lines if "warning" in line]
    assert "token_amount is at its cap in 25% of conversations" in warning and "lam" in warning
    assert not any("warning" in line for line in describe(3, 40, STEP, Seen()))
