"""A policy behind an endpoint: its turns are taken as they are, its failures are no turns."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from interaction.chat import ChatFailed
from interaction.conversation import Conversation, StopReason
from interaction.future import sample_future
from interaction.policy import PolicyTurn
from interaction.task import Task
from interaction.user import UserTurn
from serving.endpoint_policy import EndpointPolicy
from tests.serving.fault_server import Step, fault_server, raw, says, status
from tests.serving.patient_client import Patient

OPENING = Conversation().add("system", "Ask.").add("user", "I want to go on a trip.")


def taken(limits: Path, *steps: Step) -> tuple[PolicyTurn, list[dict[str, object]], Patient]:
    """Return a turn, what was sent for it, and the client."""
    with fault_server(*steps) as server:
        patient = Patient(server, limits, "policy")
        turn = asyncio.run(EndpointPolicy(patient.client).reply(OPENING, 9, 2**40 + 3))
    return turn, server.log.bodies, patient


def test_a_turn_is_what_the_endpoint_said_within_its_own_budget_and_seed(limits: Path) -> None:
    turn, (sent,), _ = taken(limits, says(" Which city? "))
    assert turn == PolicyTurn(" Which city? ") and turn.fault is None
    assert sent["max_tokens"] == 9 and sent["seed"] == 3
    assert sent["messages"] == OPENING.to_dicts()


def test_a_turn_cut_by_its_budget_is_the_policys_own_and_not_asked_for_again(limits: Path) -> None:
    turn, sent, _ = taken(limits, says("Which", "length"))
    assert turn.text == "Which" and turn.fault is StopReason.LENGTH and len(sent) == 1


@pytest.mark.parametrize("nothing", ["", None, " \n"])
def test_an_empty_turn_is_the_policys_fault_and_not_asked_for_again(
    nothing: str | None, limits: Path
) -> None:
    turn, sent, _ = taken(limits, says(nothing))
    assert turn.fault is StopReason.POLICY_INVALID and len(sent) == 1


def test_a_failed_call_is_tried_again_and_all_of_it_is_paid_for(limits: Path) -> None:
    turn, sent, patient = taken(limits, status(500), says("Which city?"))
    assert turn.text == "Which city?" and len(sent) == 2 and len(patient.waits) == 1
    assert patient.client.totals.calls == 2 and patient.client.totals.answers == 1


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (status(401, "who are you"), "HTTP 401"),
        (says("half", "content_filter"), "content filter"),
        (raw({"choices": []}), "no chat completion"),
    ],
)
def test_a_call_that_gives_no_turn_fails(step: Step, reason: str, limits: Path) -> None:
    with pytest.raises(ChatFailed, match=f"the policy model m at .*{reason}"):
        taken(limits, step)


class Chatty:
    async def reply(self, task: Task, conversation: Conversation, seed: int) -> UserTurn:
        return UserTurn("To Lisbon.")


def play(patient: Patient, task: Task) -> Conversation:
    future = sample_future(
        EndpointPolicy(patient.client),
        Chatty(),
        task,
        OPENING.add("assistant", "Where?"),
        window=2,
        max_tokens=9,
        user_seed=1,
        policy_seed=2,
    )
    return asyncio.run(future).conversation


def test_a_future_ends_on_a_turn_that_was_cut(limits: Path, trip: Task) -> None:
    with fault_server(says("How many"), says("days", "length")) as server:
        played = play(Patient(server, limits), trip)
    assert played.stop is StopReason.LENGTH and played.said_by("assistant")[-1] == "days"


def test_a_future_whose_policy_is_not_reached_is_no_future(limits: Path, trip: Task) -> None:
    with fault_server(says("How many"), status(403)) as server, pytest.raises(ChatFailed):
        play(Patient(server, limits), trip)
