"""What it is worth that the n replies to a prompt meet the same users.

    python benchmarks/common_random_numbers.py [--groups 200] [--replies 8] [--draws 2]
                                               [--processes N] [--json FILE]

For each planning problem a scripted stochastic policy gives n replies, good ones and bad ones. Each
is scored on K futures with the agenda user, again and again with other users. Over these draws, the
variance of a reply's group-relative advantage (MR minus the group's mean) is pure noise. It is
taken with users shared by the group, future by future, and with users of each reply's own: the same
replies, the same number of calls. Tells both, their ratio with a 95% bootstrap interval over
groups, the difference of the mean advantages in standard errors (neither way is biased if it is
about 1), and the variance components of reward/variance.py.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data.planning.domains import Domain, load_domains
from data.planning.problem import distinct_problems
from interaction.agenda import stand
from interaction.agenda_user import AgendaUser
from interaction.conversation import Conversation
from interaction.future import sample_future
from interaction.policy import PolicyTurn
from interaction.seeds import derive_random, derive_seed
from interaction.task import Task
from reward.metric import Metric, MetricContext
from reward.multiturn_reward import conversation_reward
from reward.registry import make_metric
from reward.score import score_conversation
from reward.variance import variance_components

WEIGHTS = {
    "goal_elicited": 1.0,
    "goal_coverage": 1.0,
    "interactivity_rule": 1.0,
    "token_amount": 0.25,
}
KINDS = ("ask", "ask_two", "vague", "irrelevant", "guess")
SHARES = (0.4, 0.2, 0.1, 0.15, 0.15)

Rewards = NDArray[np.float64]


@dataclass(frozen=True)
class StochasticPolicy:
    """Asks well, badly or not at all, by chance; answers once it has been told everything.

    Attributes:
        task: What the user wants.
        domain: Where the questions are from.
    """

    task: Task
    domain: Domain

    async def reply(self, conversation: Conversation, max_tokens: int, seed: int) -> PolicyTurn:
        """Take the assistant's turn."""
        chance = random.Random(seed)
        standing = stand(self.task.goal, conversation.messages)
        if standing.answer_due:
            kept = [fact for fact in standing.told if chance.random() < 0.8]
            return PolicyTurn(f"My plan: {'; '.join(fact.value for fact in kept) or 'enjoy'}.")
        kind = chance.choices(KINDS, SHARES)[0]
        return PolicyTurn(self._speak(kind, [fact.slot for fact in standing.missing], chance))

    def _speak(self, kind: str, missing: list[str], chance: random.Random) -> str:
        if kind == "vague":
            return "What do you have in mind?"
        if kind == "guess":
            fact = chance.choice(self.task.goal.facts)
            return f"It is all arranged: {chance.choice(fact.alternatives)}."
        slots = missing if kind != "irrelevant" else sorted(self.task.goal.indifferent)
        wanted = chance.sample(slots, min(len(slots), 2 if kind == "ask_two" else 1))
        return " ".join(chance.choice(self.domain.slots[slot].questions) for slot in wanted)


def make_metrics() -> dict[str, Metric]:
    """Return the metrics of `task=planning`."""
    options = {"token_amount": {"lam": 0.005, "tokens": "policy"}}
    return {name: make_metric(name, options.get(name)) for name in WEIGHTS}


@dataclass(frozen=True)
class Group:
    """The replies to one prompt.

    Attributes:
        policy: Who replies and plays on.
        talks: The conversation up to and with each reply.
        given: Messages before the reply.
    """

    policy: StochasticPolicy
    talks: tuple[Conversation, ...]
    given: int


async def make_group(task: Task, domain: Domain, replies: int, seed: int) -> Group:
    """Let the policy reply to a user's opening."""
    policy = StochasticPolicy(task, domain)
    opened = Conversation().add("user", AgendaUser().open(task, seed).text)
    turns = [await policy.reply(opened, 64, derive_seed(seed, "reply", i)) for i in range(replies)]
    return Group(policy, tuple(opened.add("assistant", turn.text) for turn in turns), 1)


async def play(
    group: Group, metrics: dict[str, Metric], K: int, window: int, seed: int, *, shared: bool
) -> Rewards:
    """Return R* of one draw, [replies, K]."""

    async def one(reply: int, k: int) -> float:
        future = await sample_future(
            group.policy,
            AgendaUser(),
            group.policy.task,
            group.talks[reply],
            window=window,
            max_tokens=64,
            user_seed=derive_seed(seed, "user", k, "all" if shared else reply),
            policy_seed=derive_seed(seed, "future", reply, k, int(shared)),
        )
        scores = await score_conversation(
            group.policy.task, future.conversation, metrics, MetricContext(given=group.given)
        )
        return conversation_reward(scores, WEIGHTS)

    return np.array([[await one(i, k) for k in range(K)] for i in range(len(group.talks))])


def noise(draws: Rewards) -> float:
    """Return the variance over draws of a reply's advantage, mean over the group's replies.

    Args:
        draws: R*, [draws, replies, K].
    """
    return float(advantages(draws).var(axis=0, ddof=1).mean())


def advantages(draws: Rewards) -> Rewards:
    """Return each reply's advantage in each draw, [draws, replies]."""
    rewards = draws.mean(axis=2)
    centred: Rewards = rewards - rewards.mean(axis=1, keepdims=True)
    return centred


def ratio_interval(
    shared: Sequence[float], own: Sequence[float], resamples: int = 10_000
) -> tuple[float, float, float]:
    """Return the ratio of two mean variances over the same groups with its 95% interval."""
    pairs = np.array([shared, own])
    rng = np.random.default_rng(0)
    chosen = pairs[:, rng.integers(0, pairs.shape[1], (resamples, pairs.shape[1]))].mean(axis=2)
    low, high = np.percentile(chosen[0] / chosen[1], [2.5, 97.5])
    return float(pairs[0].mean() / pairs[1].mean()), float(low), float(high)


def bias(shared: Sequence[Rewards], own: Sequence[Rewards]) -> float:
    """Return the root mean square difference of mean advantages in its standard errors."""
    squares, errors = [], []
    for one, other in zip(map(advantages, shared), map(advantages, own), strict=True):
        squares.append(((one.mean(axis=0) - other.mean(axis=0)) ** 2).mean())
        errors.append((one.var(axis=0, ddof=1) + other.var(axis=0, ddof=1)).mean() / len(one))
    return float(np.sqrt(np.mean(squares) / np.mean(errors)))


@dataclass(frozen=True)
class Setting:
    """What is measured, and how often.

    Attributes:
        replies: n, replies to a prompt.
        K, window: Futures of a reply, and most user turns in each.
        draws: How often all futures are played anew, 2 or more.
        seed: Of everything.
    """

    replies: int
    K: int
    window: int
    draws: int
    seed: int = 0


def play_group(setting: Setting, problem: tuple[int, Task]) -> tuple[Rewards, Rewards]:
    """Return one group's R* with shared users and with users of their own, as in `noise`."""
    return asyncio.run(_play_group(setting, *problem))


async def _play_group(setting: Setting, number: int, task: Task) -> tuple[Rewards, Rewards]:
    domain = next(d for d in load_domains() if d.name == task.metadata["domain"])
    seed = derive_seed(setting.seed, "group", number)
    group, metrics = await make_group(task, domain, setting.replies, seed), make_metrics()
    seeds = [derive_seed(seed, "draw", draw) for draw in range(setting.draws)]

    async def draws(shared: bool) -> Rewards:
        K, window = setting.K, setting.window
        return np.stack([await play(group, metrics, K, window, s, shared=shared) for s in seeds])

    return await draws(True), await draws(False)


def measure(setting: Setting, groups: int, processes: int = 1) -> dict[str, object]:
    """Return the figures of one setting."""
    began = time.perf_counter()
    problems = distinct_problems(load_domains(), derive_random(setting.seed, "problems"))
    numbered = list(enumerate(islice(problems, groups)))
    work = partial(play_group, setting)
    if processes > 1:
        with ProcessPoolExecutor(processes) as pool:
            played = list(pool.map(work, numbered, chunksize=4))
    else:
        played = list(map(work, numbered))
    seconds = round(time.perf_counter() - began, 1)
    case = f"K={setting.K}, window={setting.window}"
    return {"case": case, "groups": groups, **figures(played), "seconds": seconds}


def figures(played: Sequence[tuple[Rewards, Rewards]]) -> dict[str, object]:
    """Return what the draws of all groups say."""
    shared, own = [pair[0] for pair in played], [pair[1] for pair in played]
    noise_shared, noise_own = list(map(noise, shared)), list(map(noise, own))
    ratio, low, high = ratio_interval(noise_shared, noise_own)
    nested = variance_components([draw.tolist() for draws in own for draw in draws])
    crossed = variance_components(
        [draw.tolist() for draws in shared for draw in draws], shared_users=True
    )
    return {
        "shared_users": round(float(np.mean(noise_shared)), 5),
        "own_users": round(float(np.mean(noise_own)), 5),
        "ratio": round(ratio, 3),
        "interval": [round(low, 3), round(high, 3)],
        "bias_in_standard_errors": round(bias(shared, own), 2),
        "within_between_own": _rounded(nested.within, nested.between),
        "within_between_shared": _rounded(crossed.within, crossed.between),
    }


def _rounded(*numbers: float | None) -> list[float | None]:
    return [None if number is None else round(number, 4) for number in numbers]


def main() -> None:
    """Measure the settings of the presets quick and paper."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--replies", type=int, default=8)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = []
    for K, window in ((1, 1), (3, 2)):
        setting = Setting(options.replies, K, window, options.draws)
        result = measure(setting, options.groups, options.processes)
        print(json.dumps(result), flush=True)
        results.append(result)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
