"""Which model a chat is with, and that model as a policy.

Promises: a folder that cannot be chatted with is one clear message, before the weights are
read. Knows nothing of who talks to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from omegaconf import DictConfig
from rich.markup import escape
from transformers.utils.logging import disable_progress_bar

from recipe.collabllm.hardware import multiplies_bfloat16
from recipe.collabllm.preflight import PreflightError, check_model
from serving.engine_policy import EnginePolicy, engine_policy
from serving.smollm2 import make_smollm2


def find_model(given: Path | None, outputs: Path, say: Callable[[str], None]) -> Path:
    """Return the model folder to talk to.

    Args:
        given: A Hugging Face folder or a run's folder; None for the newest run's model, or,
            where nothing was trained yet, the embedded one.
        outputs: Where runs and the embedded model lie.
        say: Told what is being done.

    Raises:
        ValueError: If the folder holds no chat model.
    """
    if given is None:
        folder = _newest(outputs) or make_smollm2(outputs / "models/SmolLM2-135M-Instruct", say)
    else:
        inside = given / "model"
        folder = inside if (inside / "config.json").is_file() else given
    try:
        check_model(folder, trusted=False, max_length=1)
    except PreflightError as error:
        reason = str(error).removeprefix(f"actor_rollout_ref.model.path={folder}: ")
        raise ValueError(f"--model {folder}: {reason}") from error
    return folder


@contextmanager
def opened(
    folder: Path, config: DictConfig, max_length: int, say: Callable[[str], None]
) -> Iterator[EnginePolicy]:
    """Serve a model folder as a policy that samples as the configuration's rollout does.

    Raises:
        ValueError: If the embedded engine cannot run the model.
    """
    say(f"model: {escape(str(folder))}")
    disable_progress_bar()
    with engine_policy(
        folder,
        temperature=config.actor_rollout_ref.rollout.temperature,
        top_p=config.actor_rollout_ref.rollout.top_p,
        max_length=max_length,
        dtype=torch.bfloat16 if multiplies_bfloat16() else torch.float32,
    ) as policy:
        yield policy


def _newest(outputs: Path) -> Path | None:
    """Return the model that a run exported last."""
    models = [file.parent for file in outputs.glob("*/model/config.json")]
    return max(models, key=lambda folder: folder.stat().st_mtime, default=None)
