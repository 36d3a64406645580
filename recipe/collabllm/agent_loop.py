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
from interaction.future import sample_future
from interaction.guarded_user import GuardedUser
from interaction.seeds import again_seed, derive_seed
from interaction.task import Task
from interaction.user import SimulatedUser, SimulatorFailed
from recipe.collabllm.record import FutureRecord, ReplyRecord, with_reply
from recipe.collabllm.settings import Settings, read_settings
from recipe.collabllm.verl_policy import VerlPolicy
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
        self._settings, user = _settings_and_user(json.dumps(raw))
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
            record = replace(record, futures=await self._futures(sample, policy, turn.text))
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

    async def _futures(self, sample: _Sample, policy: VerlPolicy, reply: str) -> list[FutureRecord]:
        """Play K futures of a reply at once."""
        conversation = sample.conversation.add("assistant", reply)
        return list(
            await asyncio.gather(
                *(self._future(sample, policy, conversation, k) for k in range(self._settings.K))
            )
        )

    async def _future(
        self, sample: _Sample, policy: VerlPolicy, conversation: Conversation, k: int
    ) -> FutureRecord:
        record = FutureRecord(
            k=k,
            user_seed=sample.seed(self._settings, "user", k),
            policy_seed=sample.seed(self._settings, "future", sample.session, k),
        )
        for resample in range(self._settings.max_resamples):
            played = await self._play(sample, policy, conversation, record)
            if played.failure is None:
                return played
            record = replace(
                record,
                # Not one that the guarded user has tried already.
                user_seed=again_seed(record.user_seed, self._settings.user_attempts + resample),
                policy_seed=derive_seed(record.policy_seed, "again"),
                usage=played.usage,
                resamples=resample + 1,
            )
        return await self._play(sample, policy, conversation, record)

    async def _play(
        self, sample: _Sample, policy: VerlPolicy, conversation: Conversation, record: FutureRecord
    ) -> FutureRecord:
        """Play a future once; what earlier tries of it cost is in `record`."""
        began = time.perf_counter()
        try:
            future = await sample_future(
                policy,
                self._user,
                sample.task,
                conversation,
                window=self._settings.window,
                max_tokens=self._settings.max_future_tokens,
                user_seed=record.user_seed,
                policy_seed=record.policy_seed,
            )
        except SimulatorFailed as error:
            return record.user_failed(error)
        seconds = time.perf_counter() - began
        return record.played(future, len(conversation.messages), seconds)


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
