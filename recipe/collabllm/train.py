"""One training run from nothing: checks, model, data, verl, export, report.

Promises: everything that can be wrong is found before work begins; a run that was stopped goes
on where its last checkpoint is; what it does and where things are is said as it goes.
Knows nothing of how replies are played or scored.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf, open_dict

from data.make import make_data
from data.parquet import check_file, check_splits
from recipe.collabllm import preflight
from recipe.collabllm.configuration import load_configuration, ray_folder, save_configuration
from recipe.collabllm.conversation_log import logged_steps
from recipe.collabllm.environment import process_environment
from recipe.collabllm.progress import followed, quiet_output
from recipe.collabllm.report import report_run
from recipe.collabllm.run_folder import RunFolder
from recipe.collabllm.settings import Settings, read_settings
from serving.smollm2 import make_smollm2

Say = Callable[[str], None]

_EMBEDDED_PARAMETERS = 135_000_000


class RunFailed(RuntimeError):
    """Training began and broke; the same command resumes it."""


def train(words: Sequence[str], say: Say) -> RunFolder:
    """Carry out a training run.

    Args:
        words: `key=value`, as hydra takes them.
        say: Told what is being done.

    Raises:
        ValueError: If something cannot work; nothing has been started by then.
        RunBusy: If the same run is going on.
        RunFailed: If training broke after it had begun.
    """
    config = load_configuration(words)
    settings = read_settings(OmegaConf.to_container(config.collabllm, resolve=True))
    preflight.check_numbers(config, settings)
    run = RunFolder(Path(settings.outputs).absolute() / settings.run)
    if not _complete(config, run, run.resumable_step()):
        preflight.check_user(settings)
        preflight.check_judge(settings)
    with run.locked():
        _prepare(config, settings, run, say)
        _train_and_report(config, run, say)
    return run


def make_data_only(words: Sequence[str], say: Say) -> None:
    """Make a task's files and start nothing.

    Raises:
        ValueError: If something cannot work.
    """
    config = load_configuration(words)
    settings = read_settings(OmegaConf.to_container(config.collabllm, resolve=True))
    data_files(config, settings, Path(settings.outputs).absolute(), say)


def _prepare(config: DictConfig, settings: Settings, run: RunFolder, say: Say) -> None:
    """Check everything, make what is missing, and settle the configuration."""
    outputs = Path(settings.outputs).absolute()
    files = data_files(config, settings, outputs, say)
    given = config.actor_rollout_ref.model.path
    chosen = Path(given) if given else outputs / "models" / "SmolLM2-135M-Instruct"
    if given is None:
        preflight.check_disk(outputs, _EMBEDDED_PARAMETERS)
        make_smollm2(chosen, say)
    longest = config.actor_rollout_ref.rollout.max_model_len
    trusted = config.actor_rollout_ref.model.trust_remote_code
    tokens = preflight.check_model(chosen, trusted, longest)
    parameters = preflight.count_parameters(chosen)
    preflight.check_disk(outputs, parameters)
    if config.trainer.device == "cpu":
        preflight.check_memory(chosen, config, parameters)
    for path, batch in zip(files, (config.data.train_batch_size, 1), strict=True):
        preflight.check_prompts(path, tokens, config.data.max_prompt_length, batch)
        preflight.check_tasks(path, settings)
    with open_dict(config):
        config.actor_rollout_ref.model.path = str(chosen.absolute())
        config.data.train_files, config.data.val_files = map(str, files)
        config.collabllm.outputs = str(outputs)
    save_configuration(config, run.config)
    say(f"run folder: {run.path}")


def data_files(
    config: DictConfig, settings: Settings, outputs: Path, say: Say
) -> tuple[Path, Path]:
    """Return training and validation file: those given, or those made of the settings."""
    own = config.data
    if own.train_files and own.val_files:
        train, validation = Path(own.train_files), Path(own.val_files)
        for path in (train, validation):
            say(f"data: {path} ({check_file(path)} rows)")
        check_splits(train, validation)
        return train, validation
    if own.train_files or own.val_files:
        raise preflight.PreflightError("set both data.train_files and data.val_files, or neither")
    options: dict[str, Any] = {
        "train_rows": own.train_rows,
        "validation_rows": own.validation_rows,
        "system_prompt": own.system_prompt,
        "seed": settings.seed,
    }
    if own.get("contexts"):
        options["contexts"] = OmegaConf.to_container(own.contexts)
    if own.source:
        options["source"] = own.source
    files = make_data(config.collabllm.task, options, outputs / "data")
    say(f"data {'made' if files.fresh else 'found'}: {files.train.parent}")
    return files.train, files.validation


def _train_and_report(config: DictConfig, run: RunFolder, say: Say) -> None:
    total = config.trainer.total_training_steps
    step = run.tidy()
    validated = logged_steps(run.path, "validation")
    if _complete(config, run, step):
        say(f"this run is complete ({step} steps); for another set collabllm.run=NAME")
    else:
        say(_announcement(step, total))
        with open_dict(config):
            # Before the first step, and where a killed run lost the final one.
            config.trainer.val_before_train &= step not in validated and step in (0, total)
        _run_verl(config, run, step)
        step = run.tidy()
    model = run.export_model(step)
    if model:
        say(f"model: {model}")
    report_run(run, say)


def _complete(config: DictConfig, run: RunFolder, step: int) -> bool:
    """Say whether a run whose last checkpoint is of `step` has nothing left to do."""
    trained = step >= config.trainer.total_training_steps
    return trained and step in logged_steps(run.path, "validation")


def _announcement(step: int, total: int) -> str:
    if step == 0:
        return (
            f"training for {total} steps; first, minutes without a word: Ray and verl start, and "
            "held-out problems are played"
        )
    return f"resuming from step {step} of {total}"


def _run_verl(config: DictConfig, run: RunFolder, step: int) -> None:
    """Hand over to verl's own trainer.

    Raises:
        RunFailed: If it breaks.
    """
    variables = process_environment(config, run, step)
    os.environ.update(variables)
    log = run.path / "logs" / "train.log"
    metrics = Path(os.environ["VERL_FILE_LOGGER_PATH"])
    metrics.unlink(missing_ok=True)
    shown = nullcontext(print) if config.collabllm.verbose else quiet_output(log)
    try:
        with shown as tell, followed(metrics, config.trainer.total_training_steps, tell):
            _run_ppo(config, ray_folder(run.path))
    except Exception as error:
        reason = str(error).strip().splitlines()[-1]
        raise RunFailed(f"training stopped: {reason}\nThe whole log is {log}") from error


def _run_ppo(config: DictConfig, session: Path) -> None:
    # Only now: verl reads the environment while it is imported.
    import ray
    from verl.trainer.main_ppo import TaskRunnerV1, run_ppo
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import validate_config

    OmegaConf.resolve(config)  # our resolvers are known in this process only
    validate_config(config, need_reference_policy(config), need_critic(config))
    shutil.rmtree(session, ignore_errors=True)
    try:
        run_ppo(config, task_runner_class=TaskRunnerV1)
    finally:
        ray.shutdown()
        shutil.rmtree(session, ignore_errors=True)
