"""A run's folder: one process, nothing half written, the latest whole checkpoint."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from recipe.collabllm.conversation_log import logged_steps, read_step, step_file, write_step
from recipe.collabllm.run_folder import RunBusy, RunFolder
from tests.recipe.collabllm.conftest import record


def checkpoint(run: RunFolder, step: int, whole: bool = True, model: bool = False) -> Path:
    folder = run.checkpoints / f"global_step_{step}"
    huggingface = folder / "actor" / "huggingface"
    huggingface.mkdir(parents=True)
    if model:
        (huggingface / "model.safetensors").write_text(f"weights {step}")
    if whole:
        (folder / "data.pt").write_text("state")
    return folder


def track(run: RunFolder, text: str) -> None:
    (run.checkpoints / "latest_checkpointed_iteration.txt").write_text(text)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


def test_a_new_run_has_nothing_to_resume(run: RunFolder) -> None:
    run.path.mkdir()
    assert run.tidy() == 0


def test_the_tracked_checkpoint_is_resumed_and_older_ones_go(run: RunFolder) -> None:
    checkpoint(run, 10)
    checkpoint(run, 20)
    track(run, "20")
    assert run.tidy() == 20
    assert [p.name for p in run.checkpoints.glob("global_step_*")] == ["global_step_20"]


def test_a_checkpoint_that_was_being_written_is_taken_away(run: RunFolder) -> None:
    checkpoint(run, 10)
    checkpoint(run, 20, whole=False)
    track(run, "10")
    assert run.tidy() == 10
    assert not (run.checkpoints / "global_step_20").exists()


@pytest.mark.parametrize("tracker", ["", "x", None])
def test_a_tracker_killed_in_mid_write_is_made_again(run: RunFolder, tracker: str | None) -> None:
    checkpoint(run, 10)
    if tracker is not None:
        track(run, tracker)
    assert run.tidy() == 10
    assert (run.checkpoints / "latest_checkpointed_iteration.txt").read_text() == "10"


def test_a_tracker_without_its_checkpoint_starts_over(run: RunFolder) -> None:
    checkpoint(run, 5, whole=False)
    track(run, "5")
    assert run.tidy() == 0
    assert not (run.checkpoints / "latest_checkpointed_iteration.txt").exists()


def test_half_written_files_are_taken_away(run: RunFolder) -> None:
    (run.path / "conversations").mkdir(parents=True)
    (run.path / "conversations" / ".step.jsonl.7.partial").write_text("{")
    (run.path / ".model.partial").mkdir()
    run.tidy()
    assert not list(run.path.rglob("*.partial"))


def test_the_model_is_exported_and_replaced(run: RunFolder) -> None:
    for step in (10, 20):
        checkpoint(run, step, model=True)
        assert run.export_model(step) == run.model
    assert (run.model / "model.safetensors").read_text() == "weights 20"
    checkpoint(run, 30)
    assert run.export_model(30) is None


def test_a_second_process_is_told_that_the_folder_is_taken(run: RunFolder) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from recipe.collabllm.run_folder import RunBusy, RunFolder\n"
        "try:\n    with RunFolder(Path(sys.argv[1])).locked(): print('in')\n"
        "except RunBusy as error: print(error)\n"
    )
    command = [sys.executable, "-c", code, str(run.path)]
    with run.locked():
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "a run is going on in this folder" in told and "collabllm.run=NAME" in told
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "in\n"
    with run.locked(), pytest.raises(RunBusy), run.locked():
        pass


def test_conversations_are_written_whole_and_read_back(tmp_path: Path) -> None:
    records = [record("a", 0), record("a", 1, None)]
    assert write_step(tmp_path, "train", 7, records) == step_file(tmp_path, "train", 7)
    assert read_step(tmp_path, "train", 7) == records
    write_step(tmp_path, "train", 7, records[:1])
    write_step(tmp_path, "train", 11, records)
    assert len(read_step(tmp_path, "train", 7)) == 1
    assert logged_steps(tmp_path, "train") == [7, 11]
    assert len(list(step_file(tmp_path, "train", 7).parent.iterdir())) == 2
