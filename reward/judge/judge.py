"""The judge: a chat model that answers the questions of all metrics about a conversation.

    verdicts = Judge(model).verdicts(task, conversation, questions, given=1, seed=7)
    verdict = await verdicts.of(question)  # every metric awaits the same call

Promises: one call for all questions, or one each; a question without a usable verdict is a
`JudgeFailed` of its own and takes no other down. Knows nothing of metrics, weights or HTTP.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from interaction.chat import ChatModel
from interaction.conversation import Conversation
from interaction.task import Task
from reward.judge.asking import Answers, ask
from reward.judge.form import check_names
from reward.judge.prompt import JudgePrompt, conversation_prompt
from reward.judge.question import JudgeFailed, Question, Verdict
from reward.judge.reference import lacks
from reward.judge.shared_call import SharedCall
from reward.judge.transcript import shown


@dataclass(frozen=True)
class Slot:
    """Where the verdict on a question is found: in which call, under which key."""

    call: SharedCall[Answers]
    key: str


class JudgeVerdicts:
    """The answers about one conversation; no call is made before the first is asked for.

    Args:
        slots: Where each question is answered.
        share: Part of the calls that is this conversation's, in 0..1.
    """

    def __init__(self, slots: Mapping[Question, Slot], share: float = 1.0) -> None:
        self._slots = slots
        self._share = share

    async def of(self, question: Question) -> Verdict:
        """Return the verdict on a question; see `Verdicts`."""
        slot = self._slots.get(question)
        if slot is None:
            raise JudgeFailed(f"the question {question.name!r} was not given to the judge")
        answers = await slot.call.result()
        return answers.verdict(slot.key)

    @property
    def usage(self) -> Mapping[str, float]:
        """What the calls that are over have cost, as in `Answers.usage`."""
        total: Counter[str] = Counter()
        for call in {slot.call for slot in self._slots.values()}:
            total.update(call.done.usage if call.done else {})
        return {name: amount * self._share for name, amount in total.items()}


@dataclass(frozen=True)
class Judge:
    """Who judges, and how it is asked.

    Attributes:
        model: Who.
        calls: `one` call for all questions, or `separate` ones that run at once.
        max_tokens: Budget of one answer, 1 or more; None for the endpoint's own.
        attempts: Calls at most for a verdict that fits, 1 or more.
        key: What the fences' nonces are hashed with, up to 64 bytes. Drawn for each process;
            give one to have the same prompts, and so hits in an answer cache, across
            processes. Keep it from the policy.
    """

    model: ChatModel
    calls: Literal["one", "separate"] = "one"
    max_tokens: int | None = None
    attempts: int = 2
    key: bytes = field(default_factory=lambda: secrets.token_bytes(16), repr=False)

    def __post_init__(self) -> None:
        if self.calls not in ("one", "separate"):
            raise ValueError(f"judge: calls must be 'one' or 'separate', got {self.calls!r}")
        for name, value in (("attempts", self.attempts), ("max_tokens", self.max_tokens)):
            if value is not None and value < 1:
                raise ValueError(f"judge: {name} must be at least 1, got {value}")

    def verdicts(
        self,
        task: Task,
        conversation: Conversation,
        questions: Sequence[Question],
        *,
        given: int = 0,
        seed: int = 0,
    ) -> JudgeVerdicts:
        """Return the answers about a conversation, to be awaited.

        Args:
            task: What it was about.
            conversation: What is judged.
            questions: What may be asked; equal ones count once.
            given: Leading messages that were there before the policy spoke.
            seed: Of the calls.

        Raises:
            ValueError: If two different questions have one name, or a name cannot be used.
        """
        asked = by_name(questions)
        groups = [asked] if self.calls == "one" else [{name: q} for name, q in asked.items()]

        def prompt(wanted: Sequence[Question]) -> JudgePrompt:
            return conversation_prompt(task, wanted, shown(conversation, given), self.key, seed)

        slots: dict[Question, Slot] = {}
        for group in groups:
            call = SharedCall(partial(self.answers, task, group, prompt, seed))
            slots |= {question: Slot(call, name) for name, question in group.items()}
        return JudgeVerdicts(slots)

    async def answers(
        self,
        task: Task,
        asked: Mapping[str, Question],
        prompt: Callable[[Sequence[Question]], JudgePrompt],
        seed: int,
    ) -> Answers:
        """Ask now; `verdicts` is what asks when it is needed.

        Args:
            task: What the questions are about.
            asked: The questions by the key of their verdict.
            prompt: Makes the prompt for those questions that the task allows.
            seed: Of the call.

        Raises:
            JudgeFailed: If there is nothing to show.
        """
        lacking = {key: why for key, question in asked.items() if (why := lacks(task, question))}
        askable = {key: question for key, question in asked.items() if key not in lacking}
        if not askable:
            return Answers({}, lacking, {})
        try:
            made = prompt(list(dict.fromkeys(askable.values())))
        except ValueError as error:
            raise JudgeFailed(f"the conversation cannot be shown: {error}") from error
        answers = await ask(
            self.model,
            made,
            askable,
            seed=seed,
            attempts=self.attempts,
            max_tokens=self.max_tokens,
        )
        return Answers(answers.verdicts, {**lacking, **answers.faults}, answers.usage)


def by_name(questions: Sequence[Question]) -> dict[str, Question]:
    """Return questions by name, each once.

    Raises:
        ValueError: If two different questions have one name, or a name cannot be used.
    """
    named: dict[str, Question] = {}
    for question in questions:
        check_names(question)
        if named.setdefault(question.name, question) != question:
            raise ValueError(f"two different questions are called {question.name!r}")
    return named
