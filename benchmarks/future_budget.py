"""Futures shared out by need against the same number for each reply, at equal cost.

    python benchmarks/future_budget.py [--groups 600] [--planning 24] [--n 8] [--seed 0]

Groups of replies with known MR are drawn; each rule spends n * K futures on a group and estimates
the replies' MR. Told, as a ratio to uniform K over the same futures with its 95% bootstrap interval
over groups (below 1: the rule is better): the mean squared error of the advantages, and the share
of pairs in the wrong order. Rules, all in two stages with `first` = K / 2 and the fixed weight:

    gaps       reward/allocation.py: where the variance of all gaps shrinks most, users shared
    variance   the same as if no users were shared (Neyman's allocation)
    order      where the expected number of pairs in the wrong order shrinks most
    order_gap  the same, each wrong pair as bad as its gap is wide

`alike`: normal futures, the same spread for all. `sure_and_variable`: most replies come out the
same each time, some vary much. `right_or_wrong`: R* is 0 or 1. `shared_users`: as
sure_and_variable, half of it the user of the future, whom all replies share. `planning`: planning
problems, the agenda user and scripted assistants that ask, answer or miss the point by chance.
`planning_steady`: the same replies, but in the futures most turns follow one script.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from data.planning.domains import load_domains
from data.planning.problem import distinct_problems
from evaluation.scripted_assistants import SCRIPTED
from interaction.agenda_user import AgendaUser
from interaction.conversation import Conversation
from interaction.future import sample_future
from interaction.policy import PolicyTurn
from interaction.seeds import derive_random, derive_seed
from interaction.task import Task
from reward.allocation import FuturePlan, GroupNoise, group_noise, share_out, staged_mean
from reward.metric import MetricContext
from reward.multiturn_reward import conversation_reward
from reward.registry import make_metric
from reward.score import score_conversation

Floats = NDArray[np.float64]
Rule = Callable[[FuturePlan, Floats], list[int]]

KINDS = ("alike", "sure_and_variable", "right_or_wrong", "shared_users")
STEADY = {"planning": 0.0, "planning_steady": 0.85}
RESAMPLES = 4000
DRAWS = 16  # times that each planning group's futures are drawn from those played
PLAYED = 64  # futures of each reply of a planning group; their mean is taken as its MR
SPEECHES = ("asks_everything", "forgets_one", "insists", "answers_wrongly", "answers_at_once")
WEIGHTS = {
    "goal_elicited": 1.0,
    "goal_coverage": 1.0,
    "interactivity_rule": 1.0,
    "token_amount": 0.25,
}


@dataclass(frozen=True)
class Group:
    """Replies to one prompt.

    Attributes:
        worth: Each reply's MR, [n].
        futures: R* of futures in the order they would be played, [n, futures].
    """

    worth: Floats
    futures: Floats


def gaps(plan: FuturePlan, one: Floats) -> list[int]:
    """Share out as the recipe does."""
    return plan.shares(one.tolist())


def variance(plan: FuturePlan, one: Floats) -> list[int]:
    """Share out by each reply's own variance."""
    variances = one.var(axis=1, ddof=1)
    own = (variances * (plan.first - 1) + 2 * variances.mean()) / (plan.first + 1)
    budget = (plan.mean - plan.first) * len(one)
    return share_out(GroupNoise(tuple(own + 1e-12), 0.0), budget, plan.most - plan.first)


def order(plan: FuturePlan, one: Floats) -> list[int]:
    """Share out by the expected number of pairs in the wrong order."""
    return _by_pairs(plan, one, lambda gap, spread: _normal_tail(gap / spread))


def order_gap(plan: FuturePlan, one: Floats) -> list[int]:
    """Share out by the expected sum of the gaps of pairs in the wrong order."""

    def loss(gap: Floats, spread: Floats) -> Floats:
        z = gap / spread
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        return np.asarray(spread * density - gap * _normal_tail(z))

    return _by_pairs(plan, one, loss)


def _by_pairs(plan: FuturePlan, one: Floats, loss: Callable[[Floats, Floats], Floats]) -> list[int]:
    """Give each future to the reply that lessens the pairs' summed loss most."""
    variances = np.asarray(group_noise(one.tolist()).own) + 1e-12
    means = one.mean(axis=1)
    apart = np.abs(means[:, None] - means[None, :])
    pairs = 1 - np.eye(len(one))
    counts = np.ones(len(one), dtype=int)

    def spread(shares: Floats) -> Floats:
        kept, new = plan.weight**2 / plan.first, (1 - plan.weight) ** 2 / shares
        return np.asarray(variances * (kept + new))

    for _ in range((plan.mean - plan.first) * len(one) - len(one)):
        now, then = spread(counts), spread(counts + 1)
        less = loss(apart, np.sqrt(now[:, None] + now)) - loss(apart, np.sqrt(then[:, None] + now))
        gains = np.where(counts < plan.most - plan.first, (less * pairs).sum(axis=1), -np.inf)
        counts[int(np.argmax(gains))] += 1
    return [int(count) for count in counts]


def _normal_tail(z: Floats) -> Floats:
    """Return P(N(0, 1) > z) for z >= 0, to 1e-7 (Abramowitz and Stegun 26.2.17)."""
    t = 1 / (1 + 0.2316419 * z)
    terms = (0.319381530, -0.356563782, 1.781477937, -1.821255978, 1.330274429)
    series = sum(c * t ** (i + 1) for i, c in enumerate(terms))
    return np.asarray(np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * series)


RULES: dict[str, Rule] = {
    "gaps": gaps,
    "variance": variance,
    "order": order,
    "order_gap": order_gap,
}


def simulated(kind: str, n: int, most: int, rng: np.random.Generator) -> Group:
    """Draw a group of a kind."""
    if kind == "right_or_wrong":
        worth = rng.choice([0.0, 0.2, 0.5, 0.8, 1.0], n)
        return Group(worth, (rng.random((n, most)) < worth[:, None]).astype(float))
    worth = rng.normal(0, 0.3, n)
    spread = np.full(n, 0.3)
    if kind != "alike":
        spread = rng.choice([0.0, 0.1, 0.6], n, p=[0.4, 0.3, 0.3])
    users = rng.normal(0, 0.33, most) if kind == "shared_users" else np.zeros(most)
    return Group(worth, worth[:, None] + spread[:, None] * rng.normal(size=(n, most)) + users)


@dataclass(frozen=True)
class MixedAssistant:
    """Speaks by a script that is drawn anew each turn.

    Attributes:
        task: What the scripts are about.
        steady: Share of turns that follow the first script whatever is drawn.
    """

    task: Task
    steady: float

    async def reply(self, conversation: Conversation, max_tokens: int, seed: int) -> PolicyTurn:
        """Take a turn."""
        chance = derive_random(seed, "speech")
        speech = SPEECHES[0] if chance.random() < self.steady else chance.choice(SPEECHES)
        return await SCRIPTED[speech](self.task).reply(conversation, max_tokens, seed)


async def planning(task: Task, n: int, seed: int, steady: float) -> Group:
    """Play a group on a planning problem: n replies, PLAYED futures each, users shared."""
    mixed, policy, user = MixedAssistant(task, 0), MixedAssistant(task, steady), AgendaUser()
    metrics = {name: make_metric(name) for name in WEIGHTS}
    opened = Conversation().add("user", user.open(task, seed).text)
    futures = np.zeros((n, PLAYED))
    for i in range(n):
        turn = await mixed.reply(opened, 0, derive_seed(seed, "reply", i))
        conversation = opened.add("assistant", turn.text)
        for k in range(PLAYED):
            future = await sample_future(
                policy,
                user,
                task,
                conversation,
                window=2,
                max_tokens=0,
                user_seed=derive_seed(seed, "user", k),
                policy_seed=derive_seed(seed, "future", i, k),
            )
            context = MetricContext(given=1)
            scores = await score_conversation(task, future.conversation, metrics, context)
            futures[i, k] = conversation_reward(scores, WEIGHTS)
    return Group(futures.mean(axis=1), futures)


def reshuffled(group: Group, rng: np.random.Generator) -> Group:
    """Return the group with its futures in another order, users still shared."""
    return Group(group.worth, group.futures[:, rng.permutation(group.futures.shape[1])])


def estimates(plan: FuturePlan, group: Group) -> Iterator[Floats]:
    """Yield the replies' estimated MR: by uniform K, then by each rule."""
    yield group.futures[:, : plan.mean].mean(axis=1)
    one = group.futures[:, : plan.first]
    for rule in RULES.values():
        rows = zip(group.futures, rule(plan, one), strict=True)
        two = (row[plan.first : plan.first + share] for row, share in rows)
        mr = [staged_mean(list(a), list(b), plan.weight) for a, b in zip(one, two, strict=True)]
        yield np.asarray(mr)


def errors(estimate: Floats, worth: Floats) -> tuple[float, float]:
    """Return the advantages' mean squared error and the share of pairs in the wrong order.

    A tie is half an error; a pair of equal worth has no order.
    """
    off = (estimate - estimate.mean()) - (worth - worth.mean())
    upper = np.triu_indices(len(worth), 1)
    true, told = (np.sign(v[:, None] - v[None, :])[upper] for v in (worth, estimate))
    wrong = np.where(told == 0, 0.5, told != true)[true != 0]
    return float((off**2).mean()), float(wrong.mean()) if wrong.size else 0.0


def ratio(rule: Floats, uniform: Floats, rng: np.random.Generator) -> list[float]:
    """Return the ratio of two means over the same groups, with the bounds of its interval."""
    picks = rng.integers(0, len(rule), (RESAMPLES, len(rule)))
    drawn = rule[picks].mean(axis=1) / uniform[picks].mean(axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return [round(float(v), 3) for v in (rule.mean() / uniform.mean(), low, high)]


def compare(
    kind: str, plan: FuturePlan, groups: list[list[Group]], rng: np.random.Generator
) -> None:
    """Print what the rules make of groups, each given as one or more draws of it."""
    table = np.array(
        [
            np.mean([[errors(e, g.worth) for e in estimates(plan, g)] for g in draws], axis=0)
            for draws in groups
        ]
    )  # [groups, rules, errors]
    for j, name in enumerate(("advantage_mse", "wrong_pairs")):
        row = {"groups": kind, "K": plan.mean, "error": name}
        uniform = table[:, 0, j]
        told = {rule: ratio(table[:, i + 1, j], uniform, rng) for i, rule in enumerate(RULES)}
        print(json.dumps({**row, "uniform": round(float(uniform.mean()), 5), **told}), flush=True)


def main() -> None:
    """Compare the rules on every kind of group."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", type=int, default=600)
    parser.add_argument("--planning", type=int, default=24)
    parser.add_argument("--n", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    played = {
        kind: _play(options.planning, options.n, options.seed, steady)
        for kind, steady in STEADY.items()
        if options.planning
    }
    for kind, groups in played.items():
        print(json.dumps({"groups": kind, **_spread(groups)}), flush=True)
    for K in (4, 8):
        plan = FuturePlan(mean=K, first=K // 2, most=3 * K)
        for kind in KINDS if options.groups else ():
            drawn = [[simulated(kind, options.n, plan.most, rng)] for _ in range(options.groups)]
            compare(kind, plan, drawn, rng)
        for kind, groups in played.items():
            draws = [[reshuffled(group, rng) for _ in range(DRAWS)] for group in groups]
            compare(kind, plan, draws, rng)


def _play(count: int, n: int, seed: int, steady: float) -> list[Group]:
    """Play planning groups, each on a problem of its own."""
    tasks = islice(distinct_problems(load_domains(), random.Random(seed)), count)
    return [
        asyncio.run(planning(task, n, derive_seed(seed, i), steady)) for i, task in enumerate(tasks)
    ]


def _spread(groups: list[Group]) -> dict[str, float]:
    """Return where R* varies: between replies, within them, and by the user they share."""
    within = np.array([g.futures.var(axis=1) for g in groups])
    return {
        "between_replies": round(float(np.mean([g.worth.var() for g in groups])), 4),
        "within_replies": round(float(within.mean()), 4),
        "within_least": round(float(within.min(axis=1).mean()), 4),
        "within_greatest": round(float(within.max(axis=1).mean()), 4),
        "shared_by_user": round(float(np.mean([g.futures.mean(axis=0).var() for g in groups])), 4),
    }


if __name__ == "__main__":
    main()
