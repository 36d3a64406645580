"""The judge's prompt.

What never changes comes first (guidelines, and the rubric of the questions), then what belongs
to the task, then the transcript, then what is to be done now: so calls about the replies to one
prompt share their beginning in an endpoint's prefix cache.
Promises: texts of ours are the Markdown files in `prompts`; text of models and data sets stands
in fences only. Knows nothing of answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from string import Template

from interaction.conversation import Conversation, Message
from interaction.task import Task
from reward.judge.fence import fenced, read_fenced
from reward.judge.form import described
from reward.judge.question import Question
from reward.judge.reference import reference_lines
from reward.judge.transcript import Shown, read_turns, turn_lines

_FOLDER = Path(__file__).with_name("prompts")


@dataclass(frozen=True)
class JudgePrompt:
    """A prompt in its parts.

    Attributes:
        instructions: Guidelines and rubric, the same for all conversations.
        material: What is judged, in fences.
        closing: What is to be done now.
    """

    instructions: str
    material: str
    closing: str

    def messages(self, keys: Iterable[str], faults: Mapping[str, str]) -> list[Message]:
        """Return the messages that ask for verdicts.

        Args:
            keys: Of the verdicts that are wanted.
            faults: What was wrong with a verdict given before, by key.
        """
        asked = prompt_text("asked").substitute(keys=", ".join(keys))
        reasons = "\n".join(f"- {key}: {reason}" for key, reason in faults.items())
        again = [prompt_text("again").substitute(reasons=reasons)] if faults else []
        question = "\n\n".join([self.material, self.closing, *again, asked])
        return [Message("system", self.instructions), Message("user", question)]


def conversation_prompt(
    task: Task, questions: Iterable[Question], talk: Shown, key: bytes, seed: int
) -> JudgePrompt:
    """Return the prompt about one conversation.

    Args:
        task: What it was about.
        questions: What is asked.
        talk: What is judged.
        key: Of the fences' nonces.
        seed: Changes the nonce of the transcript.

    Raises:
        ValueError: If a text holds half a surrogate pair.
    """
    block = fenced("transcript", turn_lines(talk.conversation), key, str(seed))
    closing = prompt_text("conversation").substitute(first=talk.first)
    return made_of(task, questions, [block], closing, key)


def made_of(
    task: Task, questions: Iterable[Question], blocks: Iterable[str], closing: str, key: bytes
) -> JudgePrompt:
    """Return a prompt about blocks that are fenced already."""
    asked = list(questions)
    lines = reference_lines(task, asked)
    # Without the seed: all conversations about a task share this block.
    reference = [fenced("reference", lines, key)] if lines else []
    guidelines = prompt_text("guidelines").template
    return JudgePrompt(
        instructions="\n\n".join([guidelines, *map(_rubric, asked)]),
        material="\n\n".join([*reference, *blocks]),
        closing=closing,
    )


def read_prompt(text: str) -> Conversation:
    """Return the conversation that a prompt about one shows, exactly.

    Raises:
        ValueError, KeyError: If the text is no such prompt.
    """
    return read_turns(read_fenced(text, "transcript"))


@lru_cache(maxsize=16)
def prompt_text(name: str) -> Template:
    """Return a text of ours."""
    return Template((_FOLDER / f"{name}.md").read_text(encoding="utf-8").strip())


def _rubric(question: Question) -> str:
    fields = "\n".join(f"- `{field.name}`, {described(field)}" for field in question.fields)
    return f"## {question.name}\n\n{question.instruction.strip()}\n\n{fields}"
