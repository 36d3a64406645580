"""The agent loop with verl's own base class, and servers that behave as told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from transformers import AutoTokenizer, PreTrainedTokenizerBase
from verl.experimental.agent_loop.agent_loop import AgentLoopOutput, DictConfigWrap
from verl.utils.dataset.rl_dataset import RLHFDataset
from verl.workers.rollout.replica import TokenOutput

from interaction.seeds import person_seed
from interaction.task import Task
from interaction.user import SimulatorFailed, UserTurn
from recipe.collabllm import agent_loop
from recipe.collabllm.agent_loop import CollabLLMAgentLoop, record_of
from recipe.collabllm.group_budget import GroupBudget
from recipe.collabllm.record import FutureRecord, ReplyRecord
from reward.allocation import FuturePlan
from tests.recipe.collabllm.conftest import raw_settings


class FakeServer:
    """Stands for verl's LLM servers: answers with given texts and remembers each call."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, say: Callable[[int], str]) -> None:
        self._tokenizer, self._say = tokenizer, say
        self.calls: list[tuple[str, list[int], dict[str, Any]]] = []

    async def generate(
        self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any]
    ) -> TokenOutput:
        text = self._say(len(self.calls))
        self.calls.append((request_id, prompt_ids, sampling_params))
        await asyncio.sleep(0)
        ids = self._tokenizer.encode(text)[: sampling_params["max_tokens"] - 1]
        ended = [] if text.endswith("...") else [self._tokenizer.eos_token_id]
        return TokenOutput(
            token_ids=ids + ended,
            log_probs=[-0.5] * len(ids + ended),
            extra_fields={"global_steps": 3, "min_global_steps": 3, "max_global_steps": 3},
        )


class FailingUser:
    """Fails for every second user seed."""

    async def reply(self, task: Task, conversation: Any, seed: int) -> UserTurn:
        if seed % 2:
            raise SimulatorFailed("the endpoint is down")
        return UserTurn("I need to Lisbon.")


class CostlyUser:
    """Fails for half of all chances, whoever it is, and costs a call each time."""

    async def reply(self, task: Task, conversation: Any, seed: int) -> UserTurn:
        if (seed >> 48) % 2:
            raise SimulatorFailed("the endpoint is down", {"calls": 1.0})
        return UserTurn("I need to Lisbon.", usage={"calls": 1.0})


@pytest.fixture(scope="module")
def tokenizer(smollm2: Path) -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(smollm2)


def play(*reply: Any, **options: Any) -> tuple[AgentLoopOutput, ReplyRecord, FakeServer]:
    """Play one reply as verl would; see `replying` for what it takes."""
    server, run = replying(*reply, **options)
    output = asyncio.run(run)
    return output, record_of(output.extra_fields)[1], server


def replying(
    tokenizer: PreTrainedTokenizerBase,
    smollm2: Path,
    task: Task,
    say: Callable[[int], str],
    session: int = 0,
    step: int = 3,
    split: str = "train",
    **settings: Any,
) -> tuple[FakeServer, Coroutine[Any, Any, AgentLoopOutput]]:
    """Return what plays one reply as verl would."""
    server = FakeServer(tokenizer, say)
    config = OmegaConf.create(
        {
            "collabllm": raw_settings(**settings),
            "data": {"apply_chat_template_kwargs": {}},
            "actor_rollout_ref": {"model": {"path": str(smollm2)}, "rollout": {"n": 3}},
        }
    )
    row = {
        "uid": "u",
        "session_id": session,
        "global_steps": step,
        "raw_prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "A trip."}],
        "data_source": "planning",
        "extra_info": {"index": 5, "split": split, "context": "opening", "task": task.to_json()},
    }

    async def run() -> AgentLoopOutput:
        loop = CollabLLMAgentLoop(
            trainer_config=DictConfigWrap(config),
            server_manager=server,
            tokenizer=tokenizer,
            processor=None,
            dataset_cls=RLHFDataset,
            data_config=DictConfigWrap(config.data),
        )
        output = await loop.run({"temperature": 1.0, "logprobs": True}, **row)
        assert isinstance(output, AgentLoopOutput)
        return output

    return server, run()


def test_the_trained_tokens_are_those_that_were_generated(tokenizer, smollm2, trip) -> None:  # type: ignore[no-untyped-def]
    output, _, server = play(tokenizer, smollm2, trip, lambda i: "Which city?")
    assert output.prompt_ids == server.calls[0][1]
    assert output.response_ids == [*tokenizer.encode("Which city?"), tokenizer.eos_token_id]
    assert output.response_mask == [1] * len(output.response_ids)
    assert output.response_logprobs == [-0.5] * len(output.response_ids)


def test_the_policy_sees_the_full_template_at_every_turn(tokenizer, smollm2, trip) -> None:  # type: ignore[no-untyped-def]
    _, record, server = play(tokenizer, smollm2, trip, lambda i: "Which city?", K=1, window=3)
    (future,) = record.futures
    said = [*record.prompt, {"role": "assistant", "content": record.reply}, *future.messages]
    assert len(server.calls) == 4
    for turn, (_, prompt_ids, _) in enumerate(server.calls):
        until = len(record.prompt) + 2 * turn
        whole = tokenizer.apply_chat_template(said[:until], add_generation_prompt=True)
        assert prompt_ids == list(whole["input_ids"])


def test_reply_and_futures_have_budgets_of_their_own(tokenizer, smollm2, trip) -> None:  # type: ignore[no-untyped-def]
    _, _, server = play(tokenizer, smollm2, trip, lambda i: "Which city?")
    assert [params["max_tokens"] for _, _, params in server.calls] == [48, 40, 40]


def test_all_turns_of_a_reply_go_to_one_server_with_different_seeds(
    tokenizer, smollm2, trip
) -> None:  # type: ignore[no-untyped-def]
    _, _, server = play(tokenizer, smollm2, trip, lambda i: "Which city?", K=3)
    assert len({request for request, _, _ in server.calls}) == 1
    assert len({params["seed"] for _, _, params in server.calls}) == 4


def test_a_rollout_without_seeds_gets_none(tokenizer, smollm2, trip) -> None:  # type: ignore[no-untyped-def]
    _, _, server = play(tokenizer, smollm2, trip, lambda i: "Hi", seed_parameter=None)
    assert all("seed" not in params for _, _, params in server.calls)


def seeds(record: ReplyRecord) -> list[int]:
    return [future.user_seed for future in record.futures]


def test_the_n_replies_to_a_prompt_meet_the_same_users(tokenizer, smollm2, trip) -> None:  # type: ignore[no-untyped-def]
    records = [play(tokenizer, smollm2, trip, lambda i: "Hi", session=n, K=3)[1] for n in range(3)]
    assert seeds(records[0]) == seeds(records[1]) == seeds(records[2])
    assert len(set(seeds(records[0]))) == 3
    assert len({r.seed for r in records}) == 3
    assert len({f.policy_seed for r in records for f in r.futures}) == 9


def test_training_meets_other_users_each_step_and_validation_the_same(
    tokenizer, smollm2, trip
) -> None:  # type: ignore[no-untyped-def]
    def at(step: int, split: str) -> list[int]:
        return seeds(play(tokenizer, smollm2, trip, lambda i: "Hi", step=step, split=split)[1])

    assert at(1, "train") != at(2, "train")
    assert at(1, "validation") == at(2, "validation")


@pytest.mark.parametrize(
    ("text", "fault"),
    [("It never ends...", "length"), ("", "policy_invalid"), (" ", "policy_invalid")],
)
def test_an_unusable_reply_costs_no_further_call(tokenizer, smollm2, trip, text, fault) -> None:  # type: ignore[no-untyped-def]
    output, record, server = play(tokenizer, smollm2, trip, lambda i: text, K=3)
    assert record.fault == fault and record.futures == []
    assert len(server.calls) == 1 and output.response_ids


def test_a_policy_turn_cut_in_a_future_ends_it_and_is_kept(tokenizer, smollm2, trip) -> None:  # type: ignore[no-untyped-def]
    say = lambda i: "Which city?" if i == 0 else "On and on..."
    _, record, server = play(tokenizer, smollm2, trip, say, K=1, window=3)
    assert record.futures[0].stop == "length"
    assert record.futures[0].messages[-1]["content"] == "On and on..."
    assert len(server.calls) == 2


def test_futures_that_fail_are_told_and_the_others_play_on(tokenizer, smollm2, trip) -> None:  # type: ignore[no-untyped-def]
    entry = {"name": "flaky", "class_name": f"{__name__}.FailingUser", "config": {}}
    _, record, _ = play(
        tokenizer, smollm2, trip, lambda i: "Which city?", K=16, user="flaky", interaction=[entry]
    )
    failed = [f for f in record.futures if f.user_seed % 2]
    assert 0 < len(failed) < 16
    assert all(f.failure == "user: the endpoint is down" and f.reward is None for f in failed)
    assert all(f.failure is None and f.stop for f in record.futures if f not in failed)


def test_a_future_whose_user_failed_is_played_again_with_the_same_person(
    tokenizer, smollm2, trip
) -> None:  # type: ignore[no-untyped-def]
    entry = {"name": "flaky", "class_name": f"{__name__}.CostlyUser", "config": {}}

    def futures(resamples: int) -> list[FutureRecord]:
        return play(
            tokenizer, smollm2, trip, lambda i: "Which city?", K=8, user="flaky",
            interaction=[entry], max_resamples=resamples,
        )[1].futures  # fmt: skip

    once, again = futures(0), futures(9)
    assert any(future.failure for future in once) and not any(f.failure for f in again)
    for first, last in zip(once, again, strict=True):
        assert person_seed(first.user_seed) == person_seed(last.user_seed)
        assert (first.failure is None) == (last.resamples == 0)
        assert last.usage["calls"] == last.resamples + 1


class HereBudget:
    """The group's meeting point in this process instead of in Ray's."""

    def __init__(self, budget: GroupBudget) -> None:
        self.budget = budget

    @property
    def share(self) -> HereBudget:
        return self

    def remote(self, *report: Any) -> asyncio.Future[int]:
        return asyncio.ensure_future(self.budget.share(*report))


def test_with_K_auto_the_group_shares_its_futures_and_a_floored_reply_leaves_its_own(
    tokenizer, smollm2, trip, monkeypatch
) -> None:  # type: ignore[no-untyped-def]
    plan = {"mean": 3, "first": 1, "most": 5, "timeout_s": 60}
    budget = HereBudget(GroupBudget(FuturePlan(3, 1, 5), 60))
    monkeypatch.setattr(agent_loop, "shared_group_budget", lambda plan, timeout_s: budget)

    async def group() -> list[ReplyRecord]:
        texts = ("Which city?", "Which city?", "It never ends...")
        played = (
            replying(tokenizer, smollm2, trip, lambda i, t=t: t, session=n, K="auto", auto_K=plan)[
                1
            ]
            for n, t in enumerate(texts)
        )
        outputs = await asyncio.gather(*played)
        return [record_of(output.extra_fields)[1] for output in outputs]

    records = asyncio.run(group())
    assert [len(record.futures) for record in records] == [5, 4, 0]
    assert all(f.reward is not None for record in records for f in record.futures[:1])
    assert [f.user_seed for f in records[0].futures][:4] == seeds(records[1])
    alone = play(
        tokenizer, smollm2, trip, lambda i: "Hi", split="validation", K="auto", auto_K=plan
    )
    assert len(alone[1].futures) == 3


def test_a_window_of_zero_plays_no_user(tokenizer, smollm2, trip) -> None:  # type: ignore[no-untyped-def]
    _, record, server = play(tokenizer, smollm2, trip, lambda i: "Which city?", window=0, K=2)
    assert len(server.calls) == 1
    assert [f.stop for f in record.futures] == ["window", "window"]
    assert all(f.messages == [] for f in record.futures)
