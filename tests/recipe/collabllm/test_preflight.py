"""What is found to be wrong before a run begins."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from data.parquet import write_rows
from recipe.collabllm import preflight
from recipe.collabllm.configuration import load_configuration
from recipe.collabllm.hardware import GIB
from recipe.collabllm.preflight import PreflightError
from recipe.collabllm.settings import Settings, read_settings
from tests.data.test_parquet import example
from tests.recipe.collabllm.conftest import raw_settings


@pytest.fixture
def model(smollm2: Path, tmp_path: Path) -> Path:
    """A copy of the embedded model's small files, its weights linked."""
    folder = tmp_path / "model"
    shutil.copytree(smollm2, folder, copy_function=lambda s, t: Path(t).hardlink_to(s))
    return folder


def rewrite(file: Path, **changes: object) -> None:
    content = json.loads(file.read_text()) | changes
    file.unlink()  # a hard link: never write through it
    file.write_text(json.dumps(content))


def test_the_embedded_model_passes(smollm2: Path) -> None:
    preflight.check_model(smollm2, trusted=False, max_length=1024)
    assert 134e6 < preflight.count_parameters(smollm2) < 136e6


def test_a_folder_that_is_no_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match="not a Hugging Face model folder"):
        preflight.check_model(tmp_path, trusted=False, max_length=10)


def test_a_model_without_chat_template_is_refused(model: Path) -> None:
    (model / "chat_template.jinja").unlink()
    with pytest.raises(PreflightError, match="no chat template"):
        preflight.check_model(model, trusted=False, max_length=10)


def test_a_model_without_pad_token_is_refused(model: Path) -> None:
    rewrite(model / "tokenizer_config.json", pad_token=None, pad_token_id=None)
    with pytest.raises(PreflightError, match="needs an eos and a pad token"):
        preflight.check_model(model, trusted=False, max_length=10)


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_code_that_comes_with_a_model_is_refused_unless_asked_for(model: Path, file: str) -> None:
    rewrite(model / file, auto_map={"AutoTokenizer": ["evil.Tokenizer", None]})
    with pytest.raises(PreflightError, match="brings its own code.*trust_remote_code=true"):
        preflight.check_model(model, trusted=False, max_length=10)


def test_a_context_longer_than_the_model_reads_is_refused(smollm2: Path) -> None:
    with pytest.raises(PreflightError, match="reads at most 8192 tokens"):
        preflight.check_model(smollm2, trusted=False, max_length=9000)


def test_a_broken_config_is_named(model: Path) -> None:
    (model / "config.json").unlink()
    (model / "config.json").write_text("{")
    with pytest.raises(PreflightError, match=r"config\.json: cannot be read"):
        preflight.check_model(model, trusted=False, max_length=10)


def test_a_prompt_that_is_too_long_is_named_by_row(smollm2: Path, tmp_path: Path) -> None:
    tokens = preflight.check_model(smollm2, trusted=False, max_length=1024)
    file = write_rows(tmp_path / "rows.parquet", [example("a"), example("long " * 99)], "train")
    with pytest.raises(
        PreflightError, match=r"row 1: column prompt has \d+ tokens, over data\.max_p"
    ):
        preflight.check_prompts(file, tokens, longest=60)
    preflight.check_prompts(file, tokens, longest=600, batch=2)
    with pytest.raises(PreflightError, match="has 2 rows, fewer than data.train_batch_size=3"):
        preflight.check_prompts(file, tokens, longest=600, batch=3)


def test_a_full_disk_is_told_with_what_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "free_disk", lambda folder: GIB)
    with pytest.raises(
        PreflightError, match=r"1\.0 GiB free, about 4\.5 needed.*collabllm\.outputs="
    ):
        preflight.check_disk(tmp_path, 135_000_000)


def test_too_little_memory_is_told_with_what_is_needed(
    smollm2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load_configuration(["backend=cpu"])
    monkeypatch.setattr(preflight, "available_memory", lambda: 4 * GIB)
    with pytest.raises(PreflightError, match=r"4\.0 GiB of memory available, about \d+\.\d needed"):
        preflight.check_memory(smollm2, config, 135_000_000)
    monkeypatch.setattr(preflight, "available_memory", lambda: 16 * GIB)
    preflight.check_memory(smollm2, config, 135_000_000)


def test_several_passes_make_do_with_less_memory(
    monkeypatch: pytest.MonkeyPatch, smollm2: Path
) -> None:
    monkeypatch.setattr(preflight, "available_memory", lambda: 11 * GIB)
    float32 = [
        "backend=cpu",
        "actor_rollout_ref.actor.fsdp_config.dtype=float32",
        "actor_rollout_ref.rollout.n=16",
    ]
    with pytest.raises(PreflightError, match=r"ppo_max_token_len_per_gpu \(.*now 8192\)"):
        preflight.check_memory(smollm2, load_configuration(float32), 135_000_000)
    config = load_configuration([*float32, "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=640"])
    preflight.check_memory(smollm2, config, 135_000_000)


def read(*words: str) -> tuple[object, Settings]:
    config = load_configuration(["backend=cpu", *words])
    return config, read_settings(OmegaConf.to_container(config.collabllm, resolve=True))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["trainer.total_training_steps=0"], "trainer.total_training_steps=0: must be a whole"),
        (["trainer.total_training_steps=null"], "trainer.total_training_steps=None"),
        (["data.train_batch_size=1.5"], "data.train_batch_size=1.5"),
        (["actor_rollout_ref.rollout.n=1"], "rollout.n=1: must be a whole number from 2 up"),
        (["collabllm.window=9"], "a conversation may take .*max_model_len=1024: raise it"),
    ],
)
def test_numbers_that_cannot_work_are_named(words: list[str], reason: str) -> None:
    with pytest.raises(PreflightError, match=reason):
        preflight.check_numbers(*read(*words))  # type: ignore[arg-type]


def test_the_defaults_pass() -> None:
    preflight.check_numbers(*read())  # type: ignore[arg-type]


def test_a_task_that_metric_or_user_cannot_use_is_named_with_its_row(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.parquet", [example("a"), example("")], "train")
    preflight.check_tasks(file, read_settings(raw_settings()))
    unscorable = raw_settings(metrics={"accuracy": {"weight": 1.0}})
    with pytest.raises(
        PreflightError, match=r"rows.parquet: row 0: metric accuracy: .*ground_truth"
    ):
        preflight.check_tasks(file, read_settings(unscorable))
    person = {"name": "llm", "class_name": "interaction.llm_user.LLMUser"}
    config = {"endpoint": {"model": "m", "base_url": "http://127.0.0.1:1/v1"}}
    played = raw_settings(user="llm", interaction=[{**person, "config": config}])
    with pytest.raises(PreflightError, match="row 1: user llm: .*goal is empty.*goal.summary"):
        preflight.check_tasks(file, read_settings(played))
