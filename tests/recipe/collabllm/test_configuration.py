"""The configuration: hydra's groups on top of verl's, and words that fit nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from recipe.collabllm.configuration import ConfigurationError, load_configuration
from recipe.collabllm.settings import read_settings

CONFIG = Path("recipe/collabllm/config")


@pytest.mark.parametrize("words", [[], ["task=math", "data.source=x.jsonl"], ["collabllm.K=4"]])
def test_the_defaults_compose_and_can_be_read(words: list[str]) -> None:
    config = load_configuration(["backend=cpu", *words])
    settings = read_settings(OmegaConf.to_container(config.collabllm, resolve=True))  # type: ignore[arg-type]
    assert config.data.max_response_length == settings.max_reply_tokens
    assert config.algorithm.adv_estimator == "grpo"


def test_the_backend_comes_from_the_hardware_when_left_out() -> None:
    import torch

    expected = "sglang" if torch.cuda.is_available() else "hf"
    assert load_configuration([]).actor_rollout_ref.rollout.name == expected


def test_the_gpu_backend_composes_and_names_nothing_of_the_cpu() -> None:
    config = load_configuration(["backend=sglang"])
    assert config.actor_rollout_ref.rollout.name == "sglang"
    assert config.trainer.device == "cuda"
    assert config.actor_rollout_ref.model.external_lib is None


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("trainer.total_trainin_steps=3", "did you mean trainer.total_training_steps"),
        ("foo.bar=1", "there is no key 'foo.bar'"),
        ("task=poetry", "task=poetry: no such choice; available: math planning"),
        ("preset=huge", "preset=huge: no such choice; available: paper quick"),
        ("backend=tpu", "backend=tpu: no such choice; available: cpu sglang"),
        ("interaction=oracle", "interaction=oracle: no such choice; available: agenda"),
        ("collabllm.K", "collabllm.K"),
        ("task=math", "set data.source=VALUE"),
    ],
)
def test_a_word_that_fits_nothing_is_named(word: str, reason: str) -> None:
    words = [word] if word.startswith("backend") else ["backend=cpu", word]
    with pytest.raises(ConfigurationError, match=reason):
        load_configuration(words)


def test_every_key_of_ours_has_a_comment() -> None:
    """Of the section `collabllm`: its own keys and, in the task files, each metric."""
    text = (CONFIG / "collabllm.yaml").read_text().split("\ncollabllm:\n")[1].split("\n\n")[0]
    lines = text.splitlines()
    for above, line in zip(lines, lines[1:], strict=False):
        if line.startswith("  ") and not line.strip().startswith("#") and "???" not in line:
            assert above.strip().startswith("#"), line
