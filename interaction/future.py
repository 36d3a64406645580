"""The one function that plays a future: user and policy in turn, until it ends.

Promises: a future ends on a policy turn or on the user's own "done"; every turn generated is
in it; no call is spent after a turn that cannot be answered (arXiv 2502.00640, section 3.2).
Knows nothing of scores, tokens or verl.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from interaction.conversation import Conversation, StopReason
from interaction.policy import Policy, PolicyTurn
from interaction.seeds import derive_seed
from interaction.task import Task
from interaction.user import SimulatedUser, SimulatorFailed, add_usage


@dataclass(frozen=True)
class Future:
    """A conversation played to its end.

    Attributes:
        conversation: The whole conversation, the part it started from included.
        user_turns: Turns that the user took in this future.
        policy_turns: The policy's turns in this future, in order.
        usage: What the user's turns cost, summed by name.
    """

    conversation: Conversation
    user_turns: int = 0
    policy_turns: tuple[PolicyTurn, ...] = ()
    usage: dict[str, float] = field(default_factory=dict)


async def sample_future(
    policy: Policy,
    user: SimulatedUser,
    task: Task,
    conversation: Conversation,
    *,
    window: int,
    max_tokens: int,
    user_seed: int,
    policy_seed: int,
) -> Future:
    """Play one future of a conversation that ends with the policy's reply.

    Args:
        conversation: Ends with an assistant turn.
        window: Most user turns, w of the paper; 0 ends at once.
        max_tokens: Budget of each policy turn.
        user_seed: Who the user is; the same for the n replies to a prompt, so that their
            difference is theirs.
        policy_seed: Seeds the policy's turns, each with a seed of its own.

    Raises:
        SimulatorFailed: If the user has no usable turn; nothing is scored then. It tells what
            the whole future has cost.
    """
    future = Future(conversation)
    for turn in range(window):
        future = await _user_turn(future, user, task, user_seed)
        if future.conversation.stop:
            return future
        seed = derive_seed(policy_seed, turn)
        future = _with_policy_turn(
            future, await policy.reply(future.conversation, max_tokens, seed)
        )
        if future.conversation.stop:
            return future
    return Future(
        future.conversation.ended(StopReason.WINDOW),
        future.user_turns,
        future.policy_turns,
        future.usage,
    )


async def _user_turn(future: Future, user: SimulatedUser, task: Task, seed: int) -> Future:
    try:
        turn = await user.reply(task, future.conversation, seed)
    except SimulatorFailed as error:
        raise SimulatorFailed(str(error), add_usage(future.usage, error.usage)) from error
    conversation = future.conversation.add("user", turn.text)
    if turn.done:
        conversation = conversation.ended(StopReason.USER_DONE)
    usage = add_usage(future.usage, turn.usage)
    return Future(conversation, future.user_turns + 1, future.policy_turns, usage)


def _with_policy_turn(future: Future, turn: PolicyTurn) -> Future:
    conversation = future.conversation.add("assistant", turn.text)
    if turn.fault:
        conversation = conversation.ended(turn.fault)
    return Future(conversation, future.user_turns, (*future.policy_turns, turn), future.usage)
