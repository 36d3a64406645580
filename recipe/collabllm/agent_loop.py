"""verl's agent loop for CollabLLM: the policy's reply, then K futures of it at once.

Promises: only the reply is trained, on the tokens that were generated; the n replies to a
prompt meet the same K users; an unusable reply costs no further call; a failed future is told
by its reason. What a reply is worth is decided elsewhere (reward_manager.py).
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from uuid import uuid4

from omegaconf import OmegaConf
from verl.experimental.agent_loop.agent_loop import (
    AgentLoopBase,
    AgentLoopMetrics,
    AgentLoopOutput,
)

from interaction.conversation import Conversation
from interaction.guarded_user import GuardedUser
from interaction.seeds import derive_seed
from interaction.task import Task
from interaction.user import SimulatedUser
from recipe.collabllm.future_player import FuturePlayer
from recipe.collabllm.group_budget import shared_group_budget
from recipe.collabllm.record import FutureRecord, ReplyRecord, with_reply
from recipe.collabllm.scoring import ReplyScorer
from recipe.collabllm.settings import Settings, read_settings
from recipe.collabllm.verl_policy import VerlPolicy
from reward.allocation import FuturePlan
from serving.chat_tokens import ChatTokens, read_stop_token_ids


@dataclass(frozen=True)
class _Sample:
    """One row of the data set, as verl hands it over, and which of the n replies this is."""

    uid: str
    session: int
    step: int
    index: int
    split: str
    data_source: str
    context: str
    task: Task
    conversation: Conversation

    def seed(self, settings: Settings, *parts: str | int) -> int:
        """Return a seed of this prompt; in training another each step, in validation the same."""
        step = self.step if self.split == "train" else "validation"
        return derive_seed(settings.seed, self.task.task_id, self.index, step, *parts)


class CollabLLMAgentLoop(AgentLoopBase):  # type: ignore[misc]  # verl ships no types
    """Plays one reply and its futures. verl makes one object per reply."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        raw = OmegaConf.to_container(self.config.collabllm, resolve=True)
        self._raw = json.dumps(raw)
        self._settings, user = _settings_and_user(self._raw)
        self._tokens = ChatTokens(
            self.tokenizer,
            read_stop_token_ids(self.config.actor_rollout_ref.model.path),
            self.apply_chat_template_kwargs,
        )
        self._user = GuardedUser(
            user,
            self._tokens.count,
            self._settings.max_user_tokens,
            self._settings.user_timeout_s,
            self._settings.user_attempts,
        )

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput | list[Any]:
        """Return the reply as verl trains it, its record in `extra_fields`."""
        sample = _read_row(row)
        try:
            return await self._reply(sample, sampling_params)
        except Exception:
            self._leave_group(sample)  # nobody is to wait for a reply that is lost
            raise

    async def _reply(
        self, sample: _Sample, sampling_params: dict[str, Any]
    ) -> AgentLoopOutput | list[Any]:
        policy = VerlPolicy(
            self.server_manager,
            self._tokens,
            sampling_params,
            uuid4().hex,
            self._settings.seed_parameter,
        )
        prompt_ids = self._tokens.encode(sample.conversation)
        seed = sample.seed(self._settings, "reply", sample.session)
        began = time.perf_counter()
        turn, output = await policy.generate(prompt_ids, self._settings.max_reply_tokens, seed)
        replied = time.perf_counter()
        if turn.fault or not turn.token_ids:
            self._leave_group(sample)
        if not turn.token_ids:  # aborted before its first token: verl leaves out an empty list
            return []
        record = with_reply(
            turn,
            uid=sample.uid,
            session=sample.session,
            step=sample.step,
            split=sample.split,
            task_id=sample.task.task_id,
            family=sample.task.family,
            data_source=sample.data_source,
            context=sample.context,
            seed=seed,
            prompt=sample.conversation.to_dicts(),
        )
        if not turn.fault:
            record = replace(record, futures=await self._futures(sample, policy, record))
        ended = time.perf_counter()
        record = replace(record, seconds={"reply": replied - began, "futures": ended - replied})
        return AgentLoopOutput(
            prompt_ids=prompt_ids,
            response_ids=list(turn.token_ids),
            response_mask=[1] * len(turn.token_ids),
            response_logprobs=list(turn.log_probs) or None,
            num_turns=len(sample.conversation.messages) + 1,
            metrics=AgentLoopMetrics(
                generate_sequences=replied - began, tool_calls=ended - replied
            ),
            extra_fields={
                **output.extra_fields,
                "task": sample.task.to_json(),
                "record": record.to_json(),
            },
        )

    async def _futures(
        self, sample: _Sample, policy: VerlPolicy, record: ReplyRecord
    ) -> list[FutureRecord]:
        """Play the futures of a reply; with K=auto in two stages, the first one scored."""
        plan = self._settings.plan
        if plan is None:
            return await self._play(sample, policy, record, 0, self._settings.mean_futures)
        first = await self._play(sample, policy, record, 0, plan.first)
        first = await self._scorer().futures(sample.task, replace(record, futures=first))
        rewards = [f.reward for f in first if f.reward is not None]
        # In validation a reply is alone and has nobody to share with.
        alone = sample.split != "train"
        more = plan.mean - plan.first if alone else int(await self._report(sample, plan, rewards))
        return [*first, *await self._play(sample, policy, record, plan.first, more)]

    async def _play(
        self, sample: _Sample, policy: VerlPolicy, record: ReplyRecord, begin: int, count: int
    ) -> list[FutureRecord]:
        """Play futures `begin` to `begin + count` of a reply at once."""
        player = FuturePlayer(policy, self._user, self._settings, self._tokens.count)
        conversation = sample.conversation.add("assistant", record.reply)
        futures = (
            FutureRecord(
                k=k,
                user_seed=sample.seed(self._settings, "user", k),
                policy_seed=sample.seed(self._settings, "future", sample.session, k),
            )
            for k in range(begin, begin + count)
        )
        return list(
            await asyncio.gather(*(player.play(sample.task, conversation, f) for f in futures))
        )

    def _leave_group(self, sample: _Sample) -> None:
        """Tell the group that this reply plays no futures, and wait for nobody."""
        plan = self._settings.plan
        if plan is not None and sample.split == "train":
            self._report(sample, plan, None)

    def _report(self, sample: _Sample, plan: FuturePlan, rewards: list[float] | None) -> Any:
        """Tell the group what a reply's first futures were worth; ask for its share of the rest."""
        budget = shared_group_budget(plan, float(self._settings.auto_K["timeout_s"]))
        replies = int(self.config.actor_rollout_ref.rollout.n)
        return budget.share.remote(sample.uid, sample.step, sample.session, rewards, replies)

    def _scorer(self) -> ReplyScorer:
        if self._raw not in _SCORERS:
            _SCORERS[self._raw] = ReplyScorer(self._settings, self._tokens.count)
        return _SCORERS[self._raw]


# By configuration, one a process: verl makes an agent loop per reply.
_SCORERS: dict[str, ReplyScorer] = {}


@lru_cache(maxsize=4)
def _settings_and_user(raw: str) -> tuple[Settings, SimulatedUser]:
    """Return settings and user of a configuration, made once a process.

    verl makes an agent loop per reply; a user keeps no conversation, so one serves all.
    """
    settings = read_settings(json.loads(raw))
    return settings, settings.make_user()


def _read_row(row: dict[str, Any]) -> _Sample:
    extra = row["extra_info"]
    return _Sample(
        uid=str(row["uid"]),
        session=int(row["session_id"]),
        step=int(row["global_steps"]),
        index=int(extra["index"]),
        split=str(extra["split"]),
        data_source=str(row["data_source"]),
        context=str(extra["context"]),
        task=Task.from_json(extra["task"]),
        conversation=Conversation.from_dicts(row["raw_prompt"]),
    )


def record_of(extra_fields: dict[str, Any]) -> tuple[Task, ReplyRecord]:
    """Return task and record that `run` put into `extra_fields`."""
    return Task.from_json(extra_fields["task"]), ReplyRecord.from_json(extra_fields["record"])
