"""A simulated user made of rules: a goal, an agenda of facts, a persona.

After agenda-based user simulation (Schatzmann et al., 2007): the facts not yet told are the
agenda, and the assistant's turn decides which come off it. No model, no key, no noise but the
seed's: what an assistant gets out of this user is what it asked for.

Promises: stateless; a fact comes out only when asked for, when a wrong assumption needs
correcting, or when the persona volunteers it. Knows nothing of scores.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from interaction.agenda import (
    CLOSINGS,
    Standing,
    questions_for,
    respects,
    stand,
    wrong_assumptions,
)
from interaction.conversation import Conversation
from interaction.persona import Persona, choose_personas, sample_persona
from interaction.questions import Question
from interaction.seeds import derive_random
from interaction.task import Fact, Goal, Task
from interaction.user import SimulatorFailed, UserTurn

_THANKS = ("That's perfect, thank you!", "Great, that works for me. Thanks!", "Exactly right.")
_GIVES_UP = (
    "Never mind, I'll sort it out myself.",
    "This isn't getting me anywhere. I'll leave it.",
    "Forget it, thanks.",
)
_DOES_NOT_FIT = (
    "That doesn't really fit what I need.",
    "Hmm, that's too general for me.",
    "You don't know yet what I need.",
)
_ASK_ME = ("What would you like to know?", "What do you need from me?", "Ask me what you need.")
_NO_OPINION = ("That doesn't matter to me.", "I have no opinion on that.", "I can't say.")
_CAPITAL_ONLY_AT_START = frozenset(
    """
    A An At By Each Every For From He In It It's My No On Our She The There They This To We
    With
    """.split()
)


class AgendaUser:
    """The rule-based user.

    Args:
        personas: Names of the personas it draws from, by seed; None for all of them.

    Raises:
        ValueError: If a persona does not exist.
    """

    def __init__(self, personas: Sequence[str] | None = None) -> None:
        self._personas = choose_personas(personas)

    def open(self, task: Task, seed: int) -> UserTurn:
        """Return the first turn: the vague request, with a fact now and then.

        Raises:
            SimulatorFailed: If the task holds no request.
        """
        request = task.metadata.get("request")
        if not isinstance(request, str) or not request.strip():
            raise SimulatorFailed(f"task {task.task_id} has no metadata.request to open with")
        persona, rng = sample_persona(seed, self._personas), derive_random(seed, "opening")
        parts = [request, *_volunteered(persona, rng, task.goal.facts)]
        return UserTurn(_misspelt(" ".join(parts), persona, rng, task.goal))

    async def reply(self, task: Task, conversation: Conversation, seed: int) -> UserTurn:
        """Answer the assistant's last turn.

        Raises:
            SimulatorFailed: If the conversation does not end with an assistant turn.
        """
        last = conversation.last
        if last is None or last.role != "assistant":
            raise SimulatorFailed("the user can only answer an assistant turn")
        persona = sample_persona(seed, self._personas)
        rng = derive_random(seed, len(conversation.messages))
        standing = stand(task.goal, conversation.messages)
        answer = self._due if standing.answer_due else self._eliciting
        text, done = answer(task.goal, standing, last.content, persona, rng)
        return UserTurn(_misspelt(text, persona, rng, task.goal), done)

    def _eliciting(
        self, goal: Goal, standing: Standing, said: str, persona: Persona, rng: random.Random
    ) -> tuple[str, bool]:
        """Answer while facts are missing."""
        questions = questions_for(goal, said)
        told = _asked_for(questions, standing.missing)[: persona.answers_per_turn]
        if told:
            rest = [fact for fact in standing.missing if fact not in told]
            parts = [_state(fact, persona) for fact in told]
            parts += _volunteered(persona, rng, rest)
            return _closed(parts, goal, standing, rng), False
        wrong = wrong_assumptions(standing.missing, said)
        if wrong:
            return _closed([f"Actually, {_lower(wrong[0].statement)}"], goal, standing, rng), False
        if standing.fruitless >= persona.patience:
            return rng.choice(_GIVES_UP), True
        return self._fruitless(goal, standing, questions, persona, rng), False

    def _fruitless(
        self,
        goal: Goal,
        standing: Standing,
        questions: Sequence[Question],
        persona: Persona,
        rng: random.Random,
    ) -> str:
        """Answer a turn that asks for nothing that is missing."""
        again = _asked_for(questions, standing.told)
        if again:
            return f"I said that already: {_lower(again[0].statement)}"
        indifferent = [slot for q in questions for slot in q.slots if slot in goal.indifferent]
        if indifferent:
            return f"I don't mind about the {indifferent[0]}."
        if any(question.is_open for question in questions):
            volunteered = _volunteered(persona, rng, standing.missing)
            return " ".join(volunteered) if volunteered else rng.choice(_ASK_ME)
        return rng.choice(_NO_OPINION if questions else _DOES_NOT_FIT)

    def _due(
        self, goal: Goal, standing: Standing, said: str, persona: Persona, rng: random.Random
    ) -> tuple[str, bool]:
        """Answer once everything is said: take the answer, or point at what it ignores."""
        ignored = [fact for fact in standing.told if not respects(fact, said)]
        questions = questions_for(goal, said)
        if not ignored and not questions:
            return rng.choice(_THANKS), True
        if standing.fruitless >= persona.patience:
            return rng.choice(_GIVES_UP), True
        if questions:
            again = _asked_for(questions, standing.told)
            first = _state(again[0], persona) if again else "I don't mind."
            return f"{first} {rng.choice(CLOSINGS)}", False
        return f"You left something out: {_lower(ignored[0].statement)}", False


def _asked_for(questions: Sequence[Question], facts: Sequence[Fact]) -> list[Fact]:
    slots = [slot for question in questions for slot in question.slots]
    wanted = [fact for fact in facts if fact.slot in slots]
    return sorted(wanted, key=lambda fact: slots.index(fact.slot))


def _volunteered(persona: Persona, rng: random.Random, facts: Sequence[Fact]) -> list[str]:
    if facts and rng.random() < persona.volunteers:
        return [_state(rng.choice(facts), persona)]
    return []


def _state(fact: Fact, persona: Persona) -> str:
    if not persona.terse:
        return fact.statement
    return f"{fact.value[:1].upper()}{fact.value[1:].rstrip('.')}."


def _closed(parts: list[str], goal: Goal, standing: Standing, rng: random.Random) -> str:
    """Join what is told; say so if it was the last of it."""
    text = " ".join(parts)
    told_now = [
        fact for fact in standing.missing if fact.statement in text or _terse_in(fact, text)
    ]
    if len(told_now) == len(standing.missing):
        return f"{text} {rng.choice(CLOSINGS)}"
    return text


def _terse_in(fact: Fact, text: str) -> bool:
    return fact.value.lower().rstrip(".") in text.lower()


def _lower(statement: str) -> str:
    """Return a statement as it stands in mid-sentence; names and "I" keep their capital."""
    if statement.split(" ", 1)[0] in _CAPITAL_ONLY_AT_START:
        return statement[:1].lower() + statement[1:]
    return statement


def _misspelt(text: str, persona: Persona, rng: random.Random, goal: Goal) -> str:
    """Swap two letters in some words; words of the facts and the closing stay readable."""
    kept = {w for fact in goal.facts for w in f"{fact.value} {fact.statement}".lower().split()}
    kept |= {w for closing in CLOSINGS for w in closing.lower().split()}

    def word(original: str) -> str:
        if len(original) < 5 or original.lower() in kept or not original.isalpha():
            return original
        if rng.random() >= persona.typo_rate:
            return original
        at = rng.randrange(1, len(original) - 2)
        return original[:at] + original[at + 1] + original[at] + original[at + 2 :]

    return " ".join(word(part) for part in text.split(" "))
