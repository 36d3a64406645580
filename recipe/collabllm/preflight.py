"""What can be known to be wrong before a run begins.

Promises: every check is cheap next to a run, and a fault says what to change; nothing is
changed. Knows nothing of how a run is carried out.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from safetensors import safe_open
from transformers import AutoConfig, AutoTokenizer

from data.parquet import read_prompts, read_tasks
from interaction.chat import ChatFailed
from interaction.task import Task
from recipe.collabllm.hardware import GIB, available_memory, free_disk
from recipe.collabllm.settings import Settings, connect_judge, connect_user
from reward.metric import TaskUnfit
from reward.score import check_tasks as check_fit
from serving.chat_client import ChatClient
from serving.chat_tokens import ChatTokens, NoChatTemplate

# Measured: Ray, the trainer's and the engine's libraries, the data queue.
_BASE_MEMORY = 4.5 * GIB
# Bytes a parameter takes: weights, gradient and two moments in float32, the reference in
# float32, the trainer's and the engine's working copies.
_BYTES_PER_PARAMETER = 16 + 4 + 4 + 2
# Bytes of a checkpoint per parameter: weights and moments in float32, the exported model.
_CHECKPOINT_BYTES = 12 + 2


class PreflightError(ValueError):
    """The run cannot work; the message says why and what to do."""


def check_numbers(config: DictConfig, settings: Settings) -> None:
    """Check steps, batch, group and lengths.

    Raises:
        PreflightError: If one cannot work.
    """
    for key, least in (
        ("trainer.total_training_steps", 1),
        ("data.train_batch_size", 1),
        ("data.train_rows", 1),
        ("data.validation_rows", 2),
        ("actor_rollout_ref.rollout.n", 2),
    ):
        value = OmegaConf.select(config, key)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise PreflightError(f"{key}={value}: must be a whole number from {least} up")
    longest = (
        config.data.max_prompt_length
        + settings.max_reply_tokens
        + settings.window * (settings.max_user_tokens + settings.max_future_tokens)
    )
    if longest > config.actor_rollout_ref.rollout.max_model_len:
        raise PreflightError(
            f"a conversation may take {longest} tokens (data.max_prompt_length + "
            "collabllm.max_reply_tokens + collabllm.window * (collabllm.max_user_tokens + "
            "collabllm.max_future_tokens)), more than actor_rollout_ref.rollout.max_model_len="
            f"{config.actor_rollout_ref.rollout.max_model_len}: raise it or lower the others"
        )


def check_user(settings: Settings) -> None:
    """Check that the chat model behind the user, if there is one, answers.

    Raises:
        PreflightError: If it does not; it tells URL and remedy.
    """
    clients: list[ChatClient] = []

    def connect(endpoint: Mapping[str, Any]) -> ChatClient:
        clients.append(connect_user(endpoint))
        return clients[-1]

    settings.make_user(connect)
    for client in clients:
        try:
            asyncio.run(_probe(client))
        except ChatFailed as error:
            raise PreflightError(f"collabllm.user={settings.user}: {error}") from error


def check_judge(settings: Settings) -> None:
    """Check that the judge, if there is one, answers.

    Raises:
        PreflightError: If it does not; it tells URL and remedy.
    """
    if settings.judge_endpoint is None:
        return
    try:
        asyncio.run(_probe(connect_judge(settings.judge_endpoint)))
    except ChatFailed as error:
        raise PreflightError(f"collabllm.judge_endpoint: {error}") from error


def check_tasks(path: str | Path, settings: Settings) -> None:
    """Check that a file's tasks have what the metrics and the simulated user need.

    Raises:
        PreflightError: If one has not; names row, metric or user, key and remedy.
    """
    try:
        check_fit(read_tasks(path), settings.make_metrics())
    except TaskUnfit as error:
        raise PreflightError(f"{path}: {error}") from error
    check: Callable[[Task], None] | None = getattr(settings.make_user(), "check", None)
    if check is None:
        return
    for number, task in enumerate(read_tasks(path)):
        try:
            check(task)
        except ValueError as error:
            where = f"{path}: row {number}: user {settings.user}"
            raise PreflightError(f"{where}: {error}") from error


def check_model(path: str | Path, trusted: bool, max_length: int) -> ChatTokens:
    """Check that a model folder can be trained; return its chat tokens.

    Args:
        trusted: Whether code that comes with the model may run.
        max_length: Longest conversation in tokens.

    Raises:
        PreflightError: If it cannot.
    """
    folder = Path(path)
    if not folder.is_dir() or not (folder / "config.json").is_file():
        raise PreflightError(
            f"actor_rollout_ref.model.path={path}: not a Hugging Face model folder (no config.json)"
        )
    _check_no_code(folder, trusted)
    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=trusted)
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trusted)
        tokens = ChatTokens(tokenizer)
    except NoChatTemplate as error:
        raise PreflightError(f"actor_rollout_ref.model.path={path}: {error}") from error
    except (OSError, ValueError, KeyError) as error:
        raise PreflightError(f"actor_rollout_ref.model.path={path}: {error}") from error
    positions = getattr(config.get_text_config(), "max_position_embeddings", max_length)
    if positions < max_length:
        raise PreflightError(
            f"actor_rollout_ref.model.path={path}: reads at most {positions} tokens, fewer than "
            f"actor_rollout_ref.rollout.max_model_len={max_length}: lower that"
        )
    if tokenizer.eos_token_id is None or tokenizer.pad_token_id is None:
        raise PreflightError(
            f"actor_rollout_ref.model.path={path}: the tokenizer needs an eos and a pad token; set "
            "both and save it"
        )
    return tokens


def check_prompts(path: str | Path, tokens: ChatTokens, longest: int, batch: int = 1) -> None:
    """Check that a file's prompts fit and fill a batch.

    Raises:
        PreflightError: If not; it names the row.
    """
    rows = 0
    for rows, prompt in enumerate(read_prompts(path), start=1):
        length = len(tokens.encode(prompt))
        if length > longest:
            raise PreflightError(
                f"{path}: row {rows - 1}: column prompt has {length} tokens, over "
                f"data.max_prompt_length={longest}: raise it or leave the row out"
            )
    if rows < batch:
        raise PreflightError(f"{path}: has {rows} rows, fewer than data.train_batch_size={batch}")


def check_disk(outputs: str | Path, parameters: int) -> None:
    """Check that two checkpoints and the logs fit on the disk.

    Raises:
        PreflightError: If they do not.
    """
    needed = 2 * parameters * _CHECKPOINT_BYTES + GIB
    free = free_disk(outputs)
    if free < needed:
        raise PreflightError(
            f"{outputs}: {free / GIB:.1f} GiB free, about {needed / GIB:.1f} needed for "
            "checkpoints; free some, or set collabllm.outputs=FOLDER elsewhere"
        )


def check_memory(model: str | Path, config: DictConfig, parameters: int) -> None:
    """Check that training on a CPU fits into memory.

    Raises:
        PreflightError: If it does not.
    """
    shape = AutoConfig.from_pretrained(model).get_text_config()
    floats = 6 * shape.vocab_size + 30 * shape.hidden_size * shape.num_hidden_layers
    number = 2 if config.actor_rollout_ref.actor.fsdp_config.dtype == "bfloat16" else 4
    # Of a training batch with prompts of half the allowed length; one forward pass bounds it.
    tokens = min(
        config.actor_rollout_ref.actor.ppo_max_token_len_per_gpu,
        config.data.train_batch_size
        * (
            config.data.max_prompt_length // 2
            + config.actor_rollout_ref.rollout.n * config.data.max_response_length
        ),
    )
    needed = _BASE_MEMORY + parameters * _BYTES_PER_PARAMETER + tokens * floats * number
    available = available_memory()
    if available < needed:
        raise PreflightError(
            f"{available / GIB:.1f} GiB of memory available, about {needed / GIB:.1f} needed: "
            "close other programs, or set a smaller data.train_batch_size, "
            "actor_rollout_ref.rollout.n or, to train in several passes, "
            "actor_rollout_ref.actor.ppo_max_token_len_per_gpu (tokens in a pass, now "
            f"{config.actor_rollout_ref.actor.ppo_max_token_len_per_gpu})"
        )


def count_parameters(folder: str | Path) -> int:
    """Return how many parameters the weights in a folder have."""
    total = 0
    for file in Path(folder).glob("*.safetensors"):
        with safe_open(file, framework="pt") as weights:
            names = weights.keys()
            total += sum(prod(weights.get_slice(name).get_shape()) for name in names)
    if total == 0:
        raise PreflightError(f"{folder}: has no weights (*.safetensors)")
    return total


async def _probe(client: ChatClient) -> None:
    try:
        await client.probe()
    finally:
        await client.close()


def _check_no_code(folder: Path, trusted: bool) -> None:
    """Refuse a model that brings code along, unless it was asked for.

    verl's reward workers load the tokenizer with trust_remote_code=True whatever is configured
    (experimental/reward_loop/reward_loop.py:119), so this is checked here.
    """
    if trusted:
        return
    for name in ("config.json", "tokenizer_config.json"):
        file = folder / name
        if not file.is_file():
            continue
        try:
            content: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise PreflightError(f"{file}: cannot be read: {error}") from error
        if content.get("auto_map"):
            raise PreflightError(
                f"{file}: the model brings its own code (auto_map); if you trust it, set "
                "actor_rollout_ref.model.trust_remote_code=true"
            )
