"""Time, budget and a second chance for users."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from interaction.conversation import Conversation
from interaction.guarded_user import GuardedUser
from interaction.persona import sample_persona
from interaction.task import Goal, Task
from interaction.user import SimulatorFailed, UserTurn

TASK = Task("t", "test", Goal("g"))
TALK = Conversation().add("user", "a").add("assistant", "b")


class Flaky:
    """Behaves as told, call by call."""

    def __init__(self, *behaviours: Callable[[], UserTurn] | float) -> None:
        self._behaviours = list(behaviours)
        self.seeds: list[int] = []

    async def reply(self, task: Task, conversation: Conversation, seed: int) -> UserTurn:
        self.seeds.append(seed)
        behaviour = self._behaviours.pop(0)
        if isinstance(behaviour, float):
            await asyncio.sleep(behaviour)
            return UserTurn("late")
        return behaviour()


def fails() -> UserTurn:
    raise SimulatorFailed("no")


def guarded(user: Flaky, attempts: int = 2) -> GuardedUser:
    return GuardedUser(user, lambda text: len(text.split()), 5, 0.05, attempts)


def ask(user: GuardedUser) -> UserTurn:
    return asyncio.run(user.reply(TASK, TALK, 11))


def test_a_failure_is_tried_again_with_another_seed() -> None:
    user = Flaky(fails, lambda: UserTurn("fine"))
    assert ask(guarded(user)).text == "fine"
    assert user.seeds[0] == 11 and len(set(user.seeds)) == 2


def test_every_try_is_the_same_person() -> None:
    user = Flaky(*[fails] * 30)
    with pytest.raises(SimulatorFailed):
        ask(guarded(user, attempts=30))
    assert len(set(user.seeds)) == 30
    assert len({sample_persona(seed).name for seed in user.seeds}) == 1


def test_tries_that_failed_are_paid_for() -> None:
    def costly() -> UserTurn:
        raise SimulatorFailed("no", {"calls": 2.0})

    def long() -> UserTurn:
        return UserTurn("one two three four five six", usage={"calls": 1.0, "reasked": 1.0})

    turn = ask(guarded(Flaky(costly, long, lambda: UserTurn("ok", usage={"calls": 1.0})), 3))
    assert turn.usage == {"calls": 4.0, "reasked": 1.0}
    with pytest.raises(SimulatorFailed) as caught:
        ask(guarded(Flaky(costly, costly)))
    assert caught.value.usage == {"calls": 4.0}


def test_the_last_failure_is_raised_with_its_reason() -> None:
    with pytest.raises(SimulatorFailed, match="no"):
        ask(guarded(Flaky(fails, fails)))


def test_a_user_that_takes_too_long_fails() -> None:
    with pytest.raises(SimulatorFailed, match=r"no turn within 0\.05 s"):
        ask(guarded(Flaky(5.0), attempts=1))


def test_a_turn_over_its_budget_fails() -> None:
    with pytest.raises(SimulatorFailed, match="6 tokens, over the budget 5"):
        ask(guarded(Flaky(lambda: UserTurn("one two three four five six")), attempts=1))


def test_a_fault_in_the_users_own_code_is_not_swallowed() -> None:
    def bug() -> UserTurn:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ask(guarded(Flaky(bug)))
