"""`collabllm mr`: the multiturn-aware reward of given replies, of any model, without verl.

Promises: futures are played and scored by the functions that training uses; what is wrong with
the request or the file is told before anything is played; what is done stays done. Knows
nothing of how users, policies and metrics work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from interaction.guarded_user import GuardedUser
from interaction.policy import Policy
from interaction.user import SimulatedUser
from recipe.collabllm.chat_user import plain
from recipe.collabllm.endpoint_choice import EndpointChoice, answers_of, check_reached, spent
from recipe.collabllm.future_player import FuturePlayer
from recipe.collabllm.given_reply import GivenReply, read_replies
from recipe.collabllm.metric_choice import ChoiceError, MetricChoice, choose_metrics
from recipe.collabllm.mr_file import MrFile, opened_file
from recipe.collabllm.mr_policy import PolicyChoice
from recipe.collabllm.mr_report import (
    components,
    failures,
    judge_usage,
    reward_table,
    variance_words,
)
from recipe.collabllm.mr_settings import mr_settings
from recipe.collabllm.record import Outcome, ReplyRecord
from recipe.collabllm.reply_player import ReplyPlayer
from recipe.collabllm.score import check_task, check_writable, open_judge
from recipe.collabllm.scoring import ReplyScorer
from recipe.collabllm.settings import Settings
from recipe.collabllm.time_left import time_left
from recipe.collabllm.token_count import CountTokens, token_counter
from serving.chat_client import ChatClient

Say = Callable[[str], None]

_SHOWN_FAILURES = 10
_TABLE_WIDTH = 150


@dataclass(frozen=True)
class MrRequest:
    """Whose MR is asked for, and how it is played; see docs/offline.md."""

    file: Path
    output: Path
    policy: PolicyChoice
    user: str
    user_endpoint: EndpointChoice
    judge: EndpointChoice
    task: str | None = None
    metrics: str | None = None
    weights: str | None = None
    tokenizer: Path | None = None
    K: int = 3
    window: int = 2
    max_future_tokens: int = 256
    max_user_tokens: int = 256
    max_resamples: int = 1
    seed: int = 1

    @property
    def numbers(self) -> dict[str, int]:
        """The keys of training's configuration that are whole numbers."""
        names = "K window max_future_tokens max_user_tokens max_resamples seed".split()
        return {name: getattr(self, name) for name in names}


def mr(request: MrRequest, say: Say) -> bool:
    """Play and score what is not yet in the output; return whether any reply has a number.

    Raises:
        ValueError: If the request or the file cannot be used; nothing has been played by then.
    """
    choice = choose_metrics(request.task, request.metrics, request.weights)
    replies = read_replies(request.file, request.task or "")
    for reply in replies:
        check_task(request.file, reply.line, reply.task, choice)
    check_writable(request.output, [request.file])
    settings = _settings(request, choice)
    with opened_file(request.output, _identity(request, settings), replies) as file:
        todo = [reply for reply in replies if (reply.uid, reply.session) not in file.records]
        say(f"{len(replies)} replies, {len(replies) - len(todo)} of them done before")
        if todo:
            open_judge(request.judge, choice, request.seed)
            _play(request, settings, choice, todo, file, say)
        records = [file.records[reply.uid, reply.session] for reply in replies]
    _show(records, request, say)
    return any(record.outcome is not Outcome.LEFT_OUT for record in records)


def _settings(request: MrRequest, choice: MetricChoice) -> Settings:
    user = request.user_endpoint.config()
    if request.user == "llm" and user is None:
        raise ChoiceError("--user llm needs an endpoint: name --user-url and --user-model")
    if request.user != "llm" and user is not None:
        raise ChoiceError(
            f"--user {request.user} has no endpoint: leave out --user-url, or --user llm"
        )
    judge = request.judge.config(temperature=0.0)
    if choice.judged and judge is None:
        open_judge(request.judge, choice, request.seed)  # tells what is missing
    changes: dict[str, Any] = {**request.numbers, "metrics": choice.options}
    if user is not None:
        changes["user_endpoint"] = user
    if choice.judged:
        changes["judge_endpoint"] = judge
    return mr_settings(request.user, changes)


def _identity(request: MrRequest, settings: Settings) -> Mapping[str, Any]:
    """Return all that the numbers depend on."""
    return {
        **request.numbers,
        "policy": request.policy.identity,
        "tokenizer": str(request.tokenizer) if request.tokenizer else None,
        "user": settings.user,
        "user_endpoint": answers_of(settings.user_endpoint),
        "judge_endpoint": answers_of(settings.judge_endpoint),
        "metrics": settings.metrics,
    }


def _play(
    request: MrRequest,
    settings: Settings,
    choice: MetricChoice,
    todo: Sequence[GivenReply],
    file: MrFile,
    say: Say,
) -> None:
    clients: list[ChatClient] = []

    def connect(config: Mapping[str, Any]) -> ChatClient:
        clients.append(request.user_endpoint.client(config))
        return clients[-1]

    user = settings.make_user(connect)
    turn = settings.max_user_tokens + settings.max_future_tokens
    longest, turns = settings.window * turn, 2 * settings.window
    with request.policy.opened(todo, longest, turns) as opened:
        clients += [opened.client] if opened.client else []
        asyncio.run(check_reached(clients))
        count = opened.count_tokens
        if count is None or request.tokenizer:
            count = token_counter(request.tokenizer, choice.metrics, say)
        player = _player(request, settings, opened.policy, user, count)
        say(f"playing {request.K} futures of {len(todo)} replies")
        with time_left("replies", len(todo)) as advance:

            def keep(record: ReplyRecord) -> None:
                file.add(record)
                advance()

            asyncio.run(_play_all(player, todo, keep, clients))
    for client in clients:
        say(spent(client.totals.role, client.totals.used))


def _player(
    request: MrRequest, settings: Settings, policy: Policy, user: SimulatedUser, count: CountTokens
) -> ReplyPlayer:
    guarded = GuardedUser(
        user, count, settings.max_user_tokens, settings.user_timeout_s, settings.user_attempts
    )
    slots = asyncio.Semaphore(request.policy.concurrency)
    player = FuturePlayer(policy, guarded, settings, count, slots)
    return ReplyPlayer(player, ReplyScorer(settings, count), request.K, request.seed)


async def _play_all(
    player: ReplyPlayer,
    todo: Sequence[GivenReply],
    done: Callable[[ReplyRecord], object],
    clients: Sequence[ChatClient],
) -> None:
    try:
        await player.play_all(todo, done)
    finally:
        for client in clients:
            await client.close()


def _show(records: Sequence[ReplyRecord], request: MrRequest, say: Say) -> None:
    console = Console()
    console.width = max(console.width, _TABLE_WIDTH)
    console.print(reward_table(records))
    words = variance_words(components(records, request.K))
    if words:
        say(words)
    judge = judge_usage(records)
    if judge:
        say(spent("judge", judge))
    left_out = sum(record.outcome is Outcome.LEFT_OUT for record in records)
    if left_out:
        say(f"{left_out} of {len(records)} could not be scored")
    reasons = failures(records)
    for reason in reasons[:_SHOWN_FAILURES]:
        say(f"  {escape(plain(reason))}")
    if len(reasons) > _SHOWN_FAILURES:
        say("  ... and more, in the file")
    say(f"records: {escape(str(request.output))}")
