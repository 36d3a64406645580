"""Assistants that follow a script: each tries a simulated user in one way.

Promises: deterministic, the same conversation gives the same turn; what a user has told is read
from the conversation, never from the task. Knows nothing of models or measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from interaction.agenda import questions_for, respects
from interaction.conversation import Conversation
from interaction.policy import Policy, PolicyTurn
from interaction.task import Fact, Task

Speak = Callable[[Task, Conversation], str]
MakeAssistant = Callable[[Task], Policy]

_LONG = 2000
_ADVICE = (
    "A calm look at the whole picture is worth more than a quick decision.",
    "Most people do well with a simple plan that leaves room for surprises.",
    "Small steps in a sensible order lead to a result that lasts.",
)
_GERMAN = (
    "Das ist eine schöne Idee. Wann möchten Sie damit anfangen?",
    "Danke für die Auskunft. Was ist Ihnen dabei besonders wichtig?",
    "Ich verstehe. Am besten gehen wir das Schritt für Schritt an.",
)
_SPANISH = (
    "Es una idea muy buena. ¿Cuándo quiere usted empezar?",
    "Gracias por la respuesta. ¿Qué es lo más importante para usted?",
    "Entiendo. Lo mejor es que lo hagamos todo paso a paso.",
)
_RUDE = (
    "What a silly thing to bother me with.",
    "You clearly have not thought about this at all.",
    "I am getting tired of this. Pull yourself together.",
)


@dataclass(frozen=True)
class ScriptedAssistant:
    """A policy that follows a script.

    Attributes:
        task: What the conversation is about; scripts use it for the names of slots.
        speak: The script.
    """

    task: Task
    speak: Speak

    async def reply(self, conversation: Conversation, max_tokens: int, seed: int) -> PolicyTurn:
        """Take the assistant's turn; budget and seed change nothing."""
        return PolicyTurn(self.speak(self.task, conversation))


def told_facts(task: Task, conversation: Conversation) -> list[Fact]:
    """Return the facts that the user has told, be it in other words.

    A language model seldom uses the goal's own words, so a user's turn is read as generously
    as an answer is: half of a value's content words are enough.
    """
    said = conversation.said_by("user")
    return [fact for fact in task.goal.facts if any(respects(fact, turn) for turn in said)]


def _asks_everything(task: Task, conversation: Conversation) -> str:
    """Ask for each fact once, then give an answer that respects all that was told."""
    question = _next_question(task, conversation)
    return question or _answer(told_facts(task, conversation))


def _forgets_one(task: Task, conversation: Conversation) -> str:
    """Ask for each fact, then leave one out of the first answer."""
    question = _next_question(task, conversation)
    if question:
        return question
    told = told_facts(task, conversation)
    answered = any("Here is my answer" in turn for turn in conversation.said_by("assistant"))
    return _answer(told if answered or len(told) < 2 else told[:-1])


def _next_question(task: Task, conversation: Conversation) -> str | None:
    told = told_facts(task, conversation)
    asked = conversation.said_by("assistant")
    left = [f for f in task.goal.facts if f not in told and _question(task, f) not in asked]
    return _question(task, left[0]) if left else None


def _question(task: Task, fact: Fact) -> str:
    """Return a question for one fact, by its name or else by a phrase that asks for it."""
    name = fact.slot
    if task.family == "math":  # its slots are called "given 1": nothing to ask a person
        name = next((phrase for phrase in fact.phrases if "*" not in phrase), name)
    question = f"What about the {name}?"
    asks = any(fact.slot in found.slots for found in questions_for(task.goal, question))
    return question if asks else f"What about the {fact.slot}?"


def _answer(facts: list[Fact]) -> str:
    values = "; ".join(fact.value.rstrip(".") for fact in facts) or "nothing in particular"
    return f"Here is my answer, and it takes into account: {values}."


def _answers_wrongly(task: Task, conversation: Conversation) -> str:
    """State another value of the first fact that the user has not told."""
    told = told_facts(task, conversation)
    for fact in task.goal.facts:
        if fact not in told and fact.alternatives:
            return f"It is all arranged for you: {fact.alternatives[0]}."
    return "It is all arranged, in a way that suits nobody."


def _insists(task: Task, conversation: Conversation) -> str:
    return _question(task, task.goal.facts[0]) if task.goal.facts else "What exactly is it about?"


def _writes_2000_words(task: Task, conversation: Conversation) -> str:
    words = " ".join(_ADVICE).split()
    times = -(-_LONG // len(words))
    return " ".join((words * times)[:_LONG])


def _answers_at_once(task: Task, conversation: Conversation) -> str:
    return f"Here is the solution that suits everybody. {_in_turn(_ADVICE, conversation)}"


def _in_turn(lines: tuple[str, ...], conversation: Conversation) -> str:
    return lines[len(conversation.said_by("assistant")) % len(lines)]


def _reads(lines: tuple[str, ...]) -> Speak:
    return lambda task, conversation: _in_turn(lines, conversation)


def _scripted(speak: Speak) -> MakeAssistant:
    return lambda task: ScriptedAssistant(task, speak)


SCRIPTED: Mapping[str, MakeAssistant] = {
    "asks_everything": _scripted(_asks_everything),
    "forgets_one": _scripted(_forgets_one),
    "asks_nothing": _scripted(_reads(_ADVICE)),
    "answers_at_once": _scripted(_answers_at_once),
    "answers_wrongly": _scripted(_answers_wrongly),
    "insists": _scripted(_insists),
    "is_rude": _scripted(_reads(_RUDE)),
    "writes_2000_words": _scripted(_writes_2000_words),
    "speaks_german": _scripted(_reads(_GERMAN)),
    "speaks_spanish": _scripted(_reads(_SPANISH)),
}

# Those with whom a person gets what they came for, so that leaving early is a fault.
COOPERATIVE = frozenset({"asks_everything", "forgets_one"})
