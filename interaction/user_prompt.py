"""What a language model is told in order to play a user.

What never changes comes first, then what is the same in the whole conversation, then the
history, then the question: so every call of a conversation repeats the start of the one before,
and an endpoint's prefix cache has it.

Promises: prompts are the Markdown files in `prompts`; goals, personas and turns are filled in as
data, never read as templates. Knows nothing of answers or retries.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from string import Template

from interaction.conversation import Conversation, Message, turned_round
from interaction.language import NAMES
from interaction.persona import Persona
from interaction.task import Goal, Task

_FOLDER = Path(__file__).with_name("prompts")


def turn_messages(
    task: Task, persona: Persona, description: str, conversation: Conversation
) -> list[Message]:
    """Return the messages that ask for the user's turn at the end of `conversation`.

    Args:
        description: What the task is about in general.
        conversation: As the user sees it; empty for the opening.
    """
    scene = _prompt("scene").substitute(
        description=description, persona=describe(persona), goal=_goal(task.goal)
    )
    return [
        Message("system", _prompt("instructions").template),
        Message("user", scene),
        *turned_round(conversation).messages,
        Message("user", _question(task, persona, conversation)),
    ]


def again_messages(
    messages: Sequence[Message], rejected: str, reasons: Sequence[str]
) -> list[Message]:
    """Return the messages that ask for a turn again, with the reasons why."""
    asked = _prompt("again").substitute(reasons=" ".join(reasons))
    return [
        *messages,
        Message("assistant", rejected.strip() or "(nothing)"),
        Message("user", asked),
    ]


@lru_cache(maxsize=16)
def _prompt(name: str) -> Template:
    return Template((_FOLDER / f"{name}.md").read_text(encoding="utf-8").strip())


def _question(task: Task, persona: Persona, conversation: Conversation) -> str:
    language = language_name(persona.language)
    if conversation.messages:
        return _prompt("reply").substitute(language=language)
    request = str(task.metadata.get("request", "")).strip()
    begins = f"They would put it roughly like this: {request}" if request else ""
    return _prompt("open").substitute(language=language, request=begins)


def language_name(code: str) -> str:
    """Return what a language is called in a prompt."""
    return NAMES.get(code, f"the language with the ISO code {code}")


def describe(persona: Persona) -> str:
    """Return a persona as a few lines of text."""
    lines = [
        f"You speak {language_name(persona.language)}.",
        f"What you know of the subject: {persona.knowledge or 'what most people know'}.",
        f"How you write: {persona.style or 'plainly'}.",
        f"Your slips: {persona.mistakes or 'none to speak of'}.",
        f"You tell at most {_count(persona.answers_per_turn, 'thing')} in one message"
        f"{', often the bare value instead of a sentence' if persona.terse else ''}.",
        _volunteering(persona.volunteers),
        f"You put up with {_count(persona.patience, 'turn')} in a row that get you nowhere; after "
        "the next one you leave.",
    ]
    if persona.typo_rate > 0:
        lines.append(f"About {persona.typo_rate:.0%} of your ordinary words have a typo.")
    return "\n".join(f"- {line}" for line in lines)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _volunteering(share: float) -> str:
    if share == 0:
        return "You never mention a detail that nobody asked about."
    return f"In about {share:.0%} of your messages you add one detail that nobody asked about."


def _goal(goal: Goal) -> str:
    parts = [goal.summary.strip()]
    if goal.facts:
        facts = "\n".join(f"- {fact.slot}: {fact.statement}" for fact in goal.facts)
        parts.append(f"What you can be asked about:\n{facts}")
    if goal.indifferent:
        parts.append(f"You do not mind about: {', '.join(goal.indifferent)}.")
    return "\n\n".join(parts)
