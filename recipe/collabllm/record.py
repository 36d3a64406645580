"""What is kept of one reply: its futures, their scores, and what became of it.

One record is one line of `conversations/*/step_*.jsonl` (docs/run_folder.md). The agent loop
makes it, the reward manager adds scores, the sampler adds verl's step and writes it.

Promises: plain values that survive JSON; a failure is told by its reason, never by a number.
Knows nothing of verl.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import Any

from interaction.conversation import Conversation, StopReason
from interaction.future import Future
from interaction.policy import PolicyTurn
from interaction.user import SimulatorFailed, add_usage


class Outcome(str, Enum):
    """What becomes of a reply in its group."""

    SCORED = "scored"  # has an MR from at least one valid future
    FLOOR = "floor"  # truncated, empty or malformed: the floor, no futures
    LEFT_OUT = "left_out"  # no valid future: not trained on


@dataclass(frozen=True)
class FutureRecord:
    """One future of a reply.

    Attributes:
        k: Its index; the n replies of a prompt share the user of the same k.
        user_seed, policy_seed: What it was played with.
        messages: What followed the reply.
        stop: Why it ended; None if it failed.
        user_turns: User turns in it.
        policy_tokens: Tokens the policy spent in it, the reply not counted.
        usage: What the user's turns cost, summed by name; empty for users made of rules.
        resamples: How often it was played before, each time with a failing user.
        judge_usage: What its judge cost, summed by name; empty where none was asked.
        failure: Why it has no score; None if it has one.
        scores: Per metric.
        reward: R*, or None.
        seconds: Wall time to play it.
    """

    k: int
    user_seed: int
    policy_seed: int
    messages: list[dict[str, str]] = field(default_factory=list)
    stop: str | None = None
    user_turns: int = 0
    policy_tokens: int = 0
    usage: dict[str, float] = field(default_factory=dict)
    resamples: int = 0
    judge_usage: dict[str, float] = field(default_factory=dict)
    failure: str | None = None
    scores: dict[str, float] = field(default_factory=dict)
    reward: float | None = None
    seconds: float = 0.0

    def played(self, future: Future, start: int, seconds: float) -> FutureRecord:
        """Return this record with what was played, from message `start` on."""
        return replace(
            self,
            messages=future.conversation.to_dicts()[start:],
            stop=future.conversation.stop.value if future.conversation.stop else None,
            user_turns=future.user_turns,
            policy_tokens=sum(len(turn.token_ids) for turn in future.policy_turns),
            usage=add_usage(self.usage, future.usage),
            seconds=round(seconds, 4),
        )

    def failed(self, reason: str) -> FutureRecord:
        """Return this record as that of a future without a score."""
        return replace(self, failure=reason, scores={}, reward=None)

    def user_failed(self, error: SimulatorFailed) -> FutureRecord:
        """Return this record as that of a future whose user failed, with what it cost."""
        return replace(self.failed(f"user: {error}"), usage=add_usage(self.usage, error.usage))


@dataclass(frozen=True)
class ReplyRecord:
    """One reply of the policy and everything it was scored by.

    Attributes:
        uid: verl's id of the prompt in this step; the n replies share it.
        session: Which of the n replies this is.
        step: The training step whose weights replied.
        split: "train" or "validation".
        task_id, family, data_source, context: Which problem, and which kind of context.
        seed: What the reply was sampled with.
        prompt: The messages before the reply.
        reply: Its text.
        reply_tokens: Its length in tokens, the end included.
        fault: Why it is unusable (a `StopReason`), or None.
        futures: Its futures, failed ones included.
        outcome, mr, per_metric, n_valid, variance: What it was worth; `mr` of a floored reply
            is the floor, of one left out None.
        seconds: Wall time of the reply and of all its futures.
    """

    uid: str
    session: int
    step: int
    split: str
    task_id: str
    family: str
    data_source: str
    context: str
    seed: int
    prompt: list[dict[str, str]]
    reply: str
    reply_tokens: int
    fault: str | None
    futures: list[FutureRecord] = field(default_factory=list)
    outcome: Outcome | None = None
    mr: float | None = None
    per_metric: dict[str, float] = field(default_factory=dict)
    n_valid: int = 0
    variance: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def given(self) -> int:
        """Messages that were there before the policy replied."""
        return len(self.prompt)

    def conversation(self, future: FutureRecord) -> Conversation:
        """Return the whole conversation of one future."""
        said = [*self.prompt, {"role": "assistant", "content": self.reply}, *future.messages]
        stop = StopReason(future.stop) if future.stop else None
        return replace(Conversation.from_dicts(said), stop=stop)

    def to_json(self) -> str:
        """Return the record as one line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> ReplyRecord:
        """Read what `to_json` wrote."""
        raw: dict[str, Any] = json.loads(line)
        futures = [FutureRecord(**future) for future in raw.pop("futures")]
        outcome = raw.pop("outcome")
        return cls(**raw, futures=futures, outcome=Outcome(outcome) if outcome else None)


def with_reply(turn: PolicyTurn, **known: Any) -> ReplyRecord:
    """Return the record of a reply that was just generated."""
    return ReplyRecord(
        reply=turn.text,
        reply_tokens=len(turn.token_ids),
        fault=turn.fault.value if turn.fault else None,
        **known,
    )


def reward_numbers(record: ReplyRecord, metric_names: Iterable[str]) -> dict[str, float | None]:
    """Return the record's numbers under fixed keys, as verl's `reward_extra_info` wants them.

    The keys are the same for every record, because verl takes them from the first. A metric
    without a score is None, which verl leaves out of its means.
    """
    return {
        **{name: record.per_metric.get(name) for name in metric_names},
        "valid_futures": float(record.n_valid),
        "usable_reply": float(record.outcome is not Outcome.FLOOR),
        "reply_tokens": float(record.reply_tokens),
    }
