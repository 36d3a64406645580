"""verl's old interaction contract: a class written for it runs unchanged."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from interaction.contract import BaseInteraction, InteractionUser
from interaction.conversation import Conversation
from interaction.task import Goal, Task
from interaction.user import SimulatorFailed


class GradeSchoolInteraction(BaseInteraction):
    """In the manner of verl 0.7's own for GSM8K: state by instance id, a score that decides."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config)
        self._instances: dict[str, dict[str, Any]] = {}

    async def start_interaction(
        self, instance_id: str | None = None, ground_truth: str | None = None, **kwargs: Any
    ) -> str:
        instance_id = instance_id or str(uuid4())
        self._instances[instance_id] = {"truth": ground_truth, "tries": 0}
        return instance_id

    async def generate_response(
        self, instance_id: str, messages: list[dict[str, Any]], **kwargs: Any
    ) -> tuple[bool, str, float, dict[str, Any]]:
        state = self._instances[instance_id]
        state["tries"] += 1
        said = [m["content"] for m in messages if m["role"] == "assistant"]
        state["response"] = said[-1]
        await asyncio.sleep(0)
        score = await self.calculate_score(instance_id)
        if score == 1.0:
            return True, "Your answer is right.", score, {}
        return False, f"Wrong, that was try {state['tries']}.", score, {}

    async def calculate_score(self, instance_id: str, **kwargs: Any) -> float:  # type: ignore[override]
        state = self._instances[instance_id]
        return 1.0 if state["truth"] in state["response"] else 0.0

    async def finalize_interaction(self, instance_id: str, **kwargs: Any) -> None:  # type: ignore[override]
        del self._instances[instance_id]


def math_task(truth: str) -> Task:
    return Task(f"task {truth}", "math", Goal("g"), ground_truth=truth)


def conversation(*answers: str) -> Conversation:
    talk = Conversation().add("user", "What is it?")
    for number, answer in enumerate(answers):
        talk = talk.add("assistant", answer)
        if number < len(answers) - 1:
            talk = talk.add("user", "Wrong.")
    return talk


def test_an_old_interaction_answers_and_ends() -> None:
    user = InteractionUser(GradeSchoolInteraction({"name": "gsm8k"}))
    turn = asyncio.run(user.reply(math_task("42"), conversation("It is 42."), 1))
    assert turn.done and turn.text == "Your answer is right."


def test_an_interaction_that_counts_sees_the_earlier_turns() -> None:
    user = InteractionUser(GradeSchoolInteraction({}))
    turn = asyncio.run(user.reply(math_task("42"), conversation("1", "2", "3"), 1))
    assert turn.text == "Wrong, that was try 3."


def test_interleaved_conversations_keep_their_own_instances_and_leave_none() -> None:
    interaction = GradeSchoolInteraction({})
    user = InteractionUser(interaction)

    async def many() -> list[bool]:
        talks = [conversation(f"It is {n % 7}.") for n in range(200)]
        turns = [user.reply(math_task(str(n)), talk, n) for n, talk in enumerate(talks)]
        return [turn.done for turn in await asyncio.gather(*turns)]

    assert asyncio.run(many()) == [str(n) in f"It is {n % 7}." for n in range(200)]
    assert interaction._instances == {}


def test_an_interaction_that_raises_is_a_failure_that_says_why() -> None:
    class Broken(GradeSchoolInteraction):
        async def generate_response(self, *args: Any, **kwargs: Any) -> Any:
            raise KeyError("no such instance")

    interaction = Broken({})
    with pytest.raises(SimulatorFailed, match="Broken failed: KeyError"):
        asyncio.run(InteractionUser(interaction).reply(math_task("1"), conversation("x"), 1))
    assert interaction._instances == {}


def test_an_interaction_that_says_nothing_is_a_failure() -> None:
    class Silent(GradeSchoolInteraction):
        async def generate_response(self, *args: Any, **kwargs: Any) -> Any:
            return False, "", 0.0, {}

    with pytest.raises(SimulatorFailed, match="empty"):
        asyncio.run(InteractionUser(Silent({})).reply(math_task("1"), conversation("x"), 1))


class Bare(BaseInteraction):
    """Takes nothing that the contract does not force on it, as verl's base class declared."""

    ended = 0

    async def start_interaction(self, instance_id: str) -> str:  # type: ignore[override]
        return instance_id

    async def generate_response(  # type: ignore[override]
        self, instance_id: str, messages: list[dict[str, Any]], ground_truth: str
    ) -> tuple[bool, str, float, dict[str, Any]]:
        return False, f"Not {ground_truth}?", 0.0, {}

    async def finalize_interaction(self) -> None:  # type: ignore[override]
        self.ended += 1


def test_an_interaction_gets_only_the_keywords_it_takes() -> None:
    interaction = Bare({})
    turn = asyncio.run(InteractionUser(interaction).reply(math_task("42"), conversation("1"), 1))
    assert turn.text == "Not 42?" and interaction.ended == 1
