"""The family `math` out of GSM8K: the question stays, some of its numbers are withheld.

Source: JSON lines with `question` and `answer` (the number after "####"), as published by
openai/grade-school-math. Of each problem's sentences with numbers, up to three become the
user's facts; the rest and the question itself are the opening.

Promises: rows are checked and a bad one is named by its number; split by problem; the same seed
gives the same rows. Knows nothing of other sources.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

from data.example import Example
from data.parquet import DataError
from interaction.conversation import Conversation
from interaction.seeds import derive_random
from interaction.task import Fact, Goal, Task
from interaction.wording import words

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'$])")
_NUMBER = re.compile(
    r"\d|\b(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|half|twice|"
    r"third|quarter|double|triple|times|percent)\b",
    re.I,
)
_FINAL = re.compile(r"####\s*(-?[\d,]+(?:\.\d+)?)\s*$")
_COMMON = frozenset(
    """
    about after again also because been before being both does doing down during each every
    from further have having here into itself just many more most much only other over same
    she should some such than that the their them then there these they this those through
    under until very were what when where which while will with would year your
    """.split()
)
MOST_WITHHELD = 3


def build_math(
    *,
    source: str | Path,
    train_rows: int,
    validation_rows: int,
    system_prompt: str,
    seed: int,
) -> tuple[list[Example], list[Example]]:
    """Return training and validation examples.

    Args:
        source: The JSON lines.
        train_rows, validation_rows: Most rows of each; a small source is split in proportion.

    Raises:
        DataError: If the file or a row cannot be used, or a split stays empty.
    """
    tasks = list(_distinct(read_problems(source), seed).values())
    derive_random(seed, "split").shuffle(tasks)
    share = validation_rows / (train_rows + validation_rows)
    held = min(validation_rows, int(len(tasks) * share))
    if held == 0 or len(tasks) - held == 0:
        raise DataError(
            f"{source}: {len(tasks)} usable problems are too few for {train_rows} training and "
            f"{validation_rows} validation rows; give a larger file or other numbers"
        )
    examples = [_example(task, system_prompt) for task in tasks[: held + train_rows]]
    return examples[held:], examples[:held]


def read_problems(source: str | Path) -> list[tuple[str, str]]:
    """Return (question, final answer) of every row.

    Raises:
        DataError: If the file cannot be read or a row is bad; it names the row by its number.
    """
    path = Path(source)
    if not path.is_file():
        raise DataError(f"{path}: no such file; set data.source to GSM8K's JSON lines")
    problems = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                problems.append(_read_row(path, number, line))
    if not problems:
        raise DataError(f"{path}: is empty; expected a JSON object with question and answer a line")
    return problems


def _read_row(path: Path, number: int, line: bytes) -> tuple[str, str]:
    where = f"{path}: row {number}"
    try:
        row = json.loads(line.decode("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(
            f"{where}: not a line of UTF-8 JSON ({error}); mend or delete it"
        ) from error
    if not isinstance(row, dict):
        raise DataError(f"{where}: expected an object, got {type(row).__name__}")
    for key in ("question", "answer"):
        if not isinstance(row.get(key), str) or not row[key].strip():
            raise DataError(f"{where}: key {key!r} must be a text; it has {sorted(row)}")
    final = _FINAL.search(row["answer"])
    if final is None:
        raise DataError(f"{where}: key 'answer' must end with '#### <number>'")
    return row["question"].strip(), final[1].replace(",", "")


def _distinct(problems: list[tuple[str, str]], seed: int) -> Mapping[str, Task]:
    """Return a task for every problem from which something can be withheld, by id."""
    tasks: dict[str, Task] = {}
    for question, answer in problems:
        digest = blake2b(question.encode(), digest_size=8).hexdigest()
        task = make_task(f"math/gsm8k/{digest}", question, answer, derive_random(seed, digest))
        if task is not None:
            tasks[task.task_id] = task
    return tasks


def make_task(task_id: str, question: str, answer: str, rng: random.Random) -> Task | None:
    """Return the underspecified problem, or None if no sentence can be withheld."""
    parts = [part.strip() for part in _SENTENCE.split(question) if part.strip()]
    asks = [i for i, part in enumerate(parts) if part.endswith("?")]
    numbered = [i for i, part in enumerate(parts) if _NUMBER.search(part) and i not in asks]
    if not asks or not numbered:
        return None
    count = min(len(numbered), rng.randint(1, MOST_WITHHELD))
    withheld = sorted(rng.sample(numbered, count))
    visible = " ".join(part for i, part in enumerate(parts) if i not in withheld)
    facts = tuple(
        Fact(
            slot=f"given {position}",
            value=parts[i],
            statement=parts[i],
            phrases=_phrases(parts[i], visible, parts[asks[-1]]),
        )
        for position, i in enumerate(withheld, start=1)
    )
    return Task(
        task_id=task_id,
        family="math",
        goal=Goal(summary=question, facts=facts),
        ground_truth=answer,
        metadata={"request": visible},
    )


def _phrases(sentence: str, visible: str, asked: str) -> tuple[str, ...]:
    """Return what a question mentions that asks for a withheld sentence.

    Its words that stand nowhere in the opening, and "how many/much ..." with its words that are
    not what the problem itself asks for.
    """
    content = [w for w in words(sentence) if len(w) > 3 and w.isalpha() and w not in _COMMON]
    own = [w for w in content if w not in words(visible)]
    counted = [w for w in content if w not in words(asked)] or content
    forms = [f"{how} * {w}" for w in counted for how in ("how many", "how much", "number of")]
    return tuple(dict.fromkeys(own + forms)) or words(sentence)


def _example(task: Task, system_prompt: str) -> Example:
    prompt = Conversation().add("system", system_prompt).add("user", task.metadata["request"])
    return Example(task, prompt, "opening", data_source="math", ability="math")
