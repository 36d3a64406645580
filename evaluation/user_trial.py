"""Plays a simulated user against assistants and keeps what happened, turn by turn.

Promises: the user opens and every turn of it is read for drift, timed and priced; a failure ends
its conversation and is kept, it never ends the trial. Knows nothing of measures or thresholds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from evaluation.scripted_assistants import MakeAssistant
from interaction.conversation import Conversation, StopReason
from interaction.drift import Finding, find_drift
from interaction.policy import Policy
from interaction.seeds import derive_seed
from interaction.task import Task
from interaction.user import SimulatedUser, SimulatorFailed, UserTurn

# Users made of rules open at once, those played by a model in their own time.
Opens = Callable[[Task, int], UserTurn | Awaitable[UserTurn]]


@dataclass(frozen=True)
class TrialOptions:
    """How a trial is played.

    Attributes:
        turns: Most turns of the user after its opening.
        concurrency: Conversations at a time.
        max_tokens: Budget of each turn of an assistant that is a model.
        timeout_s: Seconds one turn of the user may take.
        seed: Of everything random.
        language: What the user of a seed should speak, as ISO 639-1 code.

    Raises:
        ValueError: If a number is not positive.
    """

    turns: int = 6
    concurrency: int = 8
    max_tokens: int = 256
    timeout_s: float = 600.0
    seed: int = 1
    language: Callable[[int], str] = lambda seed: "en"

    def __post_init__(self) -> None:
        if min(self.turns, self.concurrency, self.max_tokens) < 1 or not self.timeout_s > 0:
            raise ValueError("turns, concurrency, max_tokens and timeout_s must be positive")


@dataclass(frozen=True)
class TakenTurn:
    """One turn of the user.

    Attributes:
        text: What it said.
        findings: What is wrong with it.
        seconds: How long it took.
        usage: What it cost, by name.
    """

    text: str
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0
    usage: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """One conversation between the user and one assistant.

    Attributes:
        task: What the user wants.
        assistant: The assistant's name.
        conversation: All that was said; stopped by USER_DONE if the user left.
        turns: The user's turns in order.
        failure: Why the user had no further turn, if it failed.
        lost: What that cost, by name.
        language: What the user should speak.
    """

    task: Task
    assistant: str
    conversation: Conversation
    turns: tuple[TakenTurn, ...] = ()
    failure: str | None = None
    lost: Mapping[str, float] = field(default_factory=dict)
    language: str = "en"

    @property
    def done(self) -> bool:
        """Whether the user ended the conversation."""
        return self.conversation.stop is StopReason.USER_DONE


async def play_trials(
    user: SimulatedUser,
    tasks: Sequence[Task],
    assistants: Mapping[str, MakeAssistant],
    options: TrialOptions,
    played: Callable[[], object] = lambda: None,
) -> list[Trial]:
    """Play every task with every assistant.

    The n-th task meets the same person with each assistant.

    Args:
        played: Called after each conversation.

    Returns:
        One trial for each assistant and task, assistant after assistant.
    """
    limit = asyncio.Semaphore(options.concurrency)

    async def play(number: int, name: str) -> Trial:
        async with limit:
            policy, seed = assistants[name](tasks[number]), derive_seed(options.seed, number)
            language = options.language(seed)
            trial = Trial(tasks[number], name, Conversation(), language=language)
            trial = await _play(user, policy, trial, seed, options)
            played()
            return trial

    return await asyncio.gather(*(play(n, name) for name in assistants for n in range(len(tasks))))


async def _play(
    user: SimulatedUser, policy: Policy, trial: Trial, seed: int, options: TrialOptions
) -> Trial:
    for number in range(options.turns + 1):
        trial = await _user_turn(user, trial, seed, options)
        if trial.failure or trial.done or number == options.turns:
            break
        turn = await policy.reply(
            trial.conversation, options.max_tokens, derive_seed(seed, "policy", number)
        )
        if not turn.text.strip():  # nothing that a user could answer
            break
        trial = replace(trial, conversation=trial.conversation.add("assistant", turn.text))
    return trial


async def _user_turn(user: SimulatedUser, trial: Trial, seed: int, options: TrialOptions) -> Trial:
    """Return the trial with the user's next turn, or with the reason why there is none."""
    before = trial.conversation
    try:
        turn, seconds = await asyncio.wait_for(
            _timed(user, trial.task, before, seed), options.timeout_s
        )
    except (asyncio.TimeoutError, TimeoutError):
        return replace(trial, failure=f"no turn within {options.timeout_s:g} s")
    except SimulatorFailed as error:
        return replace(trial, failure=str(error) or "no reason given", lost=error.usage)
    found = find_drift(trial.task, before, turn.text, trial.language)
    after = before.add("user", turn.text)
    if turn.done:
        after = after.ended(StopReason.USER_DONE)
    taken = TakenTurn(turn.text, found, seconds, turn.usage)
    return replace(trial, conversation=after, turns=(*trial.turns, taken))


async def _timed(
    user: SimulatedUser, task: Task, conversation: Conversation, seed: int
) -> tuple[UserTurn, float]:
    began = time.perf_counter()  # here, so that waiting for the event loop does not count
    turn = await _speak(user, task, conversation, seed)
    return turn, time.perf_counter() - began


async def _speak(
    user: SimulatedUser, task: Task, conversation: Conversation, seed: int
) -> UserTurn:
    if conversation.messages:
        return await user.reply(task, conversation, seed)
    opens: Opens | None = getattr(user, "open", None)
    if opens is None:
        return UserTurn(str(task.metadata.get("request") or task.goal.summary))
    turn = opens(task, seed)
    return turn if isinstance(turn, UserTurn) else await turn
