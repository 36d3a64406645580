"""`collabllm chat`: a person, or a simulated user, talks to a trained model.

Promises: what is wrong is told before the model is loaded; a simulated user's conversation is
played and scored by the functions that training uses; what models write is shown as plain text,
never as markup or terminal commands. Knows nothing of verl and Ray at work.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.parquet as pq
from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from rich.text import Text

from interaction.guarded_user import GuardedUser
from recipe.collabllm import preflight
from recipe.collabllm.chat_file import ConversationFile
from recipe.collabllm.chat_model import find_model, opened
from recipe.collabllm.chat_person import chat_with_person
from recipe.collabllm.chat_user import Row, Stage, plain, play
from recipe.collabllm.configuration import load_configuration
from recipe.collabllm.record import ReplyRecord
from recipe.collabllm.scoring import ReplyScorer
from recipe.collabllm.settings import Settings, read_settings
from recipe.collabllm.train import data_files
from serving.engine_policy import EnginePolicy

Say = Callable[[str], None]

# A person has no budget to learn; a reply that is cut off only annoys them.
_PERSON_REPLY = 256
_PERSON_CONTEXT = 4096


def chat_as_person(
    words: Sequence[str],
    model: Path | None,
    system: str | None,
    save: Path | None,
    say: Say,
    *,
    seed: int = 1,
) -> None:
    """Chat with a model at the terminal.

    Args:
        words: `key=value`, as for training; they give the system message and the sampling.
        model: See `find_model`.
        system: The model's system message instead of the task's; "" for none.
        save: A new file for the conversations.
        say: Told what is being done.
        seed: Same seed and same words, same replies.

    Raises:
        ValueError: If something cannot work.
    """
    config = load_configuration(words)
    folder = find_model(model, Path(config.collabllm.outputs).absolute(), say)
    prompt = config.data.system_prompt if system is None else system
    console = _console()
    with opened(folder, config, _PERSON_CONTEXT, say) as policy:
        chat_with_person(
            policy,
            prompt,
            input,
            lambda text: console.print(Text(plain(text))),
            save,
            max_tokens=_PERSON_REPLY,
            seed=seed,
        )


def chat_with_user(
    words: Sequence[str],
    model: Path | None,
    conversations: int,
    turns: int,
    save: Path | None,
    say: Say,
    *,
    seed: int = 1,
    console: Console | None = None,
) -> list[ReplyRecord]:
    """Let a simulated user talk to a model about held-out problems, and score it.

    Args:
        words: `key=value`, as for training.
        model: See `find_model`.
        conversations: How many problems.
        turns: Most user turns after the model's first reply, unless `words` set the window.
        save: A new file for the records.
        say: Told what is being done.
        seed: Chooses problems and users; the problems there are come from `collabllm.seed`.
        console: Where the conversations are shown.

    Raises:
        ValueError: If something cannot work.
    """
    config = load_configuration([f"collabllm.window={turns}", *words])
    settings = read_settings(OmegaConf.to_container(config.collabllm, resolve=True))
    outputs = Path(settings.outputs).absolute()
    preflight.check_user(settings)
    file = ConversationFile(save) if save else None
    folder = find_model(model, outputs, say)
    rows = _rows(data_files(config, settings, outputs, say)[1], conversations, seed)
    stage = Stage(console or _console())
    with opened(folder, config, _longest(config, settings), say) as policy:
        return asyncio.run(_play_all(policy, settings, rows, seed, stage, file))


async def _play_all(
    policy: EnginePolicy,
    settings: Settings,
    rows: Sequence[Row],
    seed: int,
    stage: Stage,
    file: ConversationFile | None,
) -> list[ReplyRecord]:
    scorer = ReplyScorer(settings, policy.tokens.count)
    user = GuardedUser(
        settings.make_user(),
        policy.tokens.count,
        settings.max_user_tokens,
        settings.user_timeout_s,
        settings.user_attempts,
    )
    records = []
    for row in rows:
        stage.begin(row)
        record = await scorer.score(row.task, await play(policy, settings, user, row, seed, stage))
        stage.end(row, record)
        if file:
            file.add(record)
        records.append(record)
    return records


def _rows(file: Path, number: int, seed: int) -> list[Row]:
    """Return some problems of a file: those that only begin, if there are any."""
    rows = [Row.read(row) for row in pq.read_table(file).to_pylist()]
    rows = [row for row in rows if row.context == "opening"] or rows
    if not 1 <= number <= len(rows):
        raise ValueError(f"--conversations {number}: {file} has from 1 to {len(rows)} of them")
    return random.Random(seed).sample(rows, number)


def _longest(config: DictConfig, settings: Settings) -> int:
    """Return the tokens that a whole conversation may take."""
    turn = settings.max_user_tokens + settings.max_future_tokens
    prompt = int(config.data.max_prompt_length)
    return prompt + settings.max_reply_tokens + settings.window * turn


def _console() -> Console:
    return Console(highlight=False, soft_wrap=True)
