"""Playing a future: where it ends, what it costs, and whose goal it is about."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

import pytest

from interaction.agenda_user import AgendaUser
from interaction.conversation import Conversation, StopReason
from interaction.future import Future, sample_future
from interaction.policy import PolicyTurn
from interaction.task import Fact, Goal, Task
from interaction.user import SimulatedUser, SimulatorFailed, UserTurn

TASK = Task("t", "test", Goal("g"))
REPLIED = Conversation().add("user", "hello").add("assistant", "What do you need?")


@dataclass
class ScriptedPolicy:
    """Says the same turn each time and remembers its calls."""

    turn: PolicyTurn = PolicyTurn("Which city?", (1, 2))
    calls: list[tuple[Conversation, int, int]] = field(default_factory=list)

    async def reply(self, conversation: Conversation, max_tokens: int, seed: int) -> PolicyTurn:
        self.calls.append((conversation, max_tokens, seed))
        return self.turn


@dataclass
class ScriptedUser:
    """Is done after some turns."""

    done_after: int = 99
    calls: int = 0

    async def reply(self, task: Task, conversation: Conversation, seed: int) -> UserTurn:
        self.calls += 1
        return UserTurn(f"turn {self.calls}", self.calls >= self.done_after, {"calls": 1})


def play(policy: ScriptedPolicy, user: SimulatedUser, window: int) -> Future:
    return asyncio.run(
        sample_future(
            policy, user, TASK, REPLIED, window=window, max_tokens=7, user_seed=1, policy_seed=2
        )
    )


def test_a_window_of_zero_scores_the_reply_alone() -> None:
    policy, user = ScriptedPolicy(), ScriptedUser()
    future = play(policy, user, 0)
    assert future.conversation.messages == REPLIED.messages
    assert future.conversation.stop is StopReason.WINDOW
    assert user.calls == 0 and policy.calls == []


@pytest.mark.parametrize("window", [1, 2, 5])
def test_a_full_window_ends_on_a_policy_turn(window: int) -> None:
    policy, user = ScriptedPolicy(), ScriptedUser()
    future = play(policy, user, window)
    assert future.conversation.stop is StopReason.WINDOW
    assert future.conversation.messages[-1].role == "assistant"
    assert user.calls == len(policy.calls) == future.user_turns == window
    assert len(future.conversation.messages) == len(REPLIED.messages) + 2 * window


def test_a_user_who_is_done_ends_the_future_without_a_further_policy_turn() -> None:
    policy, user = ScriptedPolicy(), ScriptedUser(done_after=2)
    future = play(policy, user, 5)
    assert future.conversation.stop is StopReason.USER_DONE
    assert future.conversation.messages[-1].content == "turn 2"
    assert len(policy.calls) == 1


@pytest.mark.parametrize(
    ("turn", "stop"),
    [
        (PolicyTurn("cut of", (1,), finished=False), StopReason.LENGTH),
        (PolicyTurn("  ", (1,)), StopReason.POLICY_INVALID),
        (PolicyTurn("x", (1,), malformed=True), StopReason.POLICY_INVALID),
    ],
)
def test_a_policy_turn_that_cannot_be_answered_ends_the_future(
    turn: PolicyTurn, stop: StopReason
) -> None:
    user = ScriptedUser()
    future = play(ScriptedPolicy(turn), user, 5)
    assert future.conversation.stop is stop
    assert user.calls == 1 and len(future.policy_turns) == 1


def test_every_policy_turn_has_its_own_budget_and_seed() -> None:
    policy = ScriptedPolicy()
    play(policy, ScriptedUser(), 3)
    assert [budget for _, budget, _ in policy.calls] == [7, 7, 7]
    assert len({seed for _, _, seed in policy.calls}) == 3


def test_what_the_user_costs_is_summed() -> None:
    assert play(ScriptedPolicy(), ScriptedUser(), 3).usage == {"calls": 3}


def test_a_failing_user_fails_the_future_and_gives_no_number() -> None:
    class Broken:
        async def reply(self, task: Task, conversation: Conversation, seed: int) -> UserTurn:
            raise SimulatorFailed("down")

    with pytest.raises(SimulatorFailed, match="down"):
        play(ScriptedPolicy(), Broken(), 1)


def test_a_future_that_failed_tells_what_it_cost() -> None:
    class LeavesUs:
        async def reply(self, task: Task, conversation: Conversation, seed: int) -> UserTurn:
            if len(conversation.said_by("user")) > 1:
                raise SimulatorFailed("gone", {"calls": 3.0})
            return UserTurn("and?", usage={"calls": 1.0})

    with pytest.raises(SimulatorFailed) as caught:
        play(ScriptedPolicy(), LeavesUs(), window=3)
    assert caught.value.usage == {"calls": 4.0}


def test_an_empty_user_turn_is_a_failure() -> None:
    with pytest.raises(SimulatorFailed, match="empty"):
        UserTurn(" ")


def _secret_task(number: int) -> Task:
    value = f"secret{number:04d}"
    fact = Fact("secret", value, f"It is {value}.", ("secret",))
    return Task(f"task {number}", "test", Goal(value, (fact,)), metadata={"request": "Help me."})


class _AskingPolicy:
    """Asks for the secret, giving way to other conversations at random."""

    def __init__(self) -> None:
        self._pause = random.Random(0)

    async def reply(self, conversation: Conversation, max_tokens: int, seed: int) -> PolicyTurn:
        await asyncio.sleep(self._pause.random() / 500)
        return PolicyTurn("What is the secret?", (1,))


class _SharedUser:
    """The fault this guards against: state of one conversation on the object all share."""

    task: Task | None = None

    async def reply(self, task: Task, conversation: Conversation, seed: int) -> UserTurn:
        self.task = task
        await asyncio.sleep(0.001)
        return await AgendaUser().reply(self.task, conversation, seed)


class _WaitingUser:
    """The agenda user, interrupted in the middle of its turn like any user over a network."""

    async def reply(self, task: Task, conversation: Conversation, seed: int) -> UserTurn:
        await asyncio.sleep(0.001)
        return await AgendaUser().reply(task, conversation, seed)


async def _leaks(user: SimulatedUser, count: int) -> int:
    """Return how many of `count` interleaved conversations saw another's secret."""
    policy = _AskingPolicy()

    async def one(number: int) -> bool:
        task = _secret_task(number)
        start = Conversation().add("user", "Help me.").add("assistant", "What is the secret?")
        future = await sample_future(
            policy, user, task, start, window=2, max_tokens=5, user_seed=number, policy_seed=number
        )
        seen = " ".join(m.content.lower() for m in future.conversation.messages)
        own = f"secret{number:04d}"
        assert own in seen or isinstance(user, _SharedUser)
        return any(f"secret{other:04d}" in seen for other in range(count) if other != number)

    return sum(await asyncio.gather(*(one(number) for number in range(count))))


def test_two_hundred_conversations_at_once_keep_their_own_goals() -> None:
    assert asyncio.run(_leaks(_WaitingUser(), 200)) == 0


def test_state_on_a_shared_user_would_be_caught() -> None:
    assert asyncio.run(_leaks(_SharedUser(), 200)) > 0
