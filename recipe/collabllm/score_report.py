"""What the scores of many conversations come to: means with intervals, failures, warnings.

Promises: pure; problems are what the mean is over, so that two conversations about one problem
are not taken for two pieces of evidence; a failure is in no mean. Knows nothing of how scores
are made.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist, fmean, stdev
from typing import Any

from rich.table import Table

from evaluation.bootstrap import Interval, mean_interval
from recipe.collabllm.metric_choice import MetricChoice
from recipe.collabllm.record import Outcome
from recipe.collabllm.scored_conversation import ScoredConversation
from reward.multiturn_reward import saturated_share, saturation_warnings

REWARD = "R*"
MULTITURN_REWARD = "MR"
# Past this a bootstrap takes hundreds of megabytes, and its interval is the normal law's.
MOST_BOOTSTRAPPED = 2000


@dataclass(frozen=True)
class ScoreReport:
    """Scores, summed up.

    Attributes:
        weights: Of the metrics.
        means: Per metric, and of R* or MR, over problems; without those nothing was scored of.
        reward: What `means` calls the reward: "MR" if there are futures of replies, else "R*".
        conversations: How many there were.
        floored: Unusable replies, at the floor.
        failures: The conversations that could not be scored.
        saturated: Share of conversations at a cost's cap, in 0..1.
    """

    weights: Mapping[str, float]
    means: Mapping[str, Interval]
    reward: str
    conversations: int
    floored: int
    failures: Sequence[ScoredConversation]
    saturated: Mapping[str, float]

    @property
    def all_failed(self) -> bool:
        """Whether no conversation could be scored."""
        return len(self.failures) == self.conversations

    @property
    def warnings(self) -> list[str]:
        """What makes the numbers less than they seem."""
        return list(saturation_warnings(self.saturated).values())

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        told = asdict(self)
        told["failures"] = [
            {"line": one.line, "k": one.k, "task_id": one.task_id, "failure": one.failure}
            for one in self.failures
        ]
        return {**told, "warnings": self.warnings}

    def table(self) -> Table:
        """Return the means as a table."""
        table = Table("", "weight", "mean", "95% interval", "problems")
        for name, mean in self.means.items():
            weight = f"{self.weights[name]:g}" if name in self.weights else ""
            interval = f"{mean.low:.3f} .. {mean.high:.3f}"
            table.add_row(name, weight, f"{mean.mean:.3f}", interval, str(mean.n))
        return table


def make_report(choice: MetricChoice, scored: Sequence[ScoredConversation]) -> ScoreReport:
    """Return the report on conversations, the futures of one reply being one line."""
    reward = MULTITURN_REWARD if any(one.k is not None for one in scored) else REWARD
    valid = [one for one in scored if one.outcome is Outcome.SCORED]
    means = {name: _mean((one, one.scores[name]) for one in valid) for name in choice.metrics}
    means[reward] = _mean((one, one.reward) for one in scored if one.reward is not None)
    return ScoreReport(
        weights=choice.weights,
        means={name: mean for name, mean in means.items() if mean is not None},
        reward=reward,
        conversations=len(scored),
        floored=sum(one.outcome is Outcome.FLOOR for one in scored),
        failures=[one for one in scored if one.outcome is Outcome.LEFT_OUT],
        saturated=saturated_share([one.scores for one in valid], choice.metrics),
    )


def _mean(values: Iterable[tuple[ScoredConversation, float]]) -> Interval | None:
    """Return the mean over problems of the mean over lines of the mean over futures."""
    lines: dict[tuple[str, int], list[float]] = defaultdict(list)
    for one, value in values:
        lines[one.task_id, one.line].append(value)
    problems: dict[str, list[float]] = defaultdict(list)
    for (task_id, _), own in lines.items():
        problems[task_id].append(fmean(own))
    values_of_problems = [fmean(own) for own in problems.values()]
    return interval(values_of_problems) if values_of_problems else None


def interval(values: Sequence[float]) -> Interval:
    """Return a mean with its 95% interval: by bootstrap, of many values by the normal law.

    Raises:
        ValueError: If there are none.
    """
    if len(values) <= MOST_BOOTSTRAPPED:
        return mean_interval(values)
    mean = fmean(values)
    margin = NormalDist().inv_cdf(0.975) * stdev(values) / math.sqrt(len(values))
    return Interval(mean, mean - margin, mean + margin, len(values))
