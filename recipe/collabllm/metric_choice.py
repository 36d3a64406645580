"""Which metrics conversations are scored by, chosen on the command line.

    --task math     --metrics paper_math     --metrics mine.yaml     --weights accuracy=1,bleu=0.5

Promises: what cannot be used is told before anything is scored, with what there is to choose
from. Knows nothing of hydra: the files of `config/metrics` are read as plain YAML.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from reward.metric import Judged, Metric
from reward.registry import make_metric
from reward.weights import check_weights

GROUPS = Path(__file__).parent / "config" / "metrics"

Options = Mapping[str, Mapping[str, Any]]  # name -> weight and the metric's own options


class ChoiceError(ValueError):
    """What was asked for cannot be done; the message names the option and the remedy."""


@dataclass(frozen=True)
class MetricChoice:
    """Metrics, made and weighted.

    Attributes:
        options: As in a file of `config/metrics`.
        metrics: By name.
        weights: By name, finite and not all 0.
    """

    options: Options
    metrics: Mapping[str, Metric]
    weights: Mapping[str, float]

    @property
    def judged(self) -> list[str]:
        """The metrics that ask a judge."""
        return [name for name, metric in self.metrics.items() if isinstance(metric, Judged)]

    @property
    def largest_reward(self) -> float:
        """A bound of what R* can be, without its sign."""
        return sum(
            abs(self.weights[name]) * max(map(abs, metric.range))
            for name, metric in self.metrics.items()
        )


def choose_metrics(task: str | None, metrics: str | None, weights: str | None) -> MetricChoice:
    """Return the metrics that options of the command line name.

    Args:
        task: A family, whose default metrics are taken where `metrics` names none.
        metrics: A group of `config/metrics`, or a YAML file of the same shape.
        weights: `name=number,...`: these metrics only, with these weights. Options are those
            of the group, or a metric's defaults where it is not in the group.

    Raises:
        ChoiceError: If nothing is named, or a metric, an option or a weight cannot be used.
    """
    group = metrics or task
    if group is None and weights is None:
        raise ChoiceError("no metrics: name them with --task, --metrics or --weights")
    options = read_group(group) if group else {}
    if weights is not None:
        chosen = parse_weights(weights)
        options = {name: {**options.get(name, {}), "weight": w} for name, w in chosen.items()}
    return made(options, "--weights" if weights is not None else f"--metrics {group}")


def made(options: Options, where: str) -> MetricChoice:
    """Return metrics made of their options.

    Args:
        where: What the options come from, for messages.

    Raises:
        ChoiceError: If a metric, an option or a weight cannot be used.
    """
    try:
        metrics = {
            name: make_metric(name, {k: v for k, v in own.items() if k != "weight"})
            for name, own in options.items()
        }
        weights = {name: own.get("weight") for name, own in options.items()}
        choice = MetricChoice(options, metrics, check_weights(weights, list(metrics)))
    except ValueError as error:
        raise ChoiceError(f"{where}: {error}") from error
    if not math.isfinite(choice.largest_reward):
        raise ChoiceError(f"{where}: weights so large that R* is not finite: lower them")
    return choice


def parse_weights(text: str) -> dict[str, float]:
    """Read `name=number,name=number`.

    Raises:
        ChoiceError: If it is not of that shape or names a metric twice.
    """
    weights: dict[str, float] = {}
    for part in text.split(","):
        name, equals, number = (piece.strip() for piece in part.partition("="))
        if not (name and equals):
            raise ChoiceError(f"--weights {text}: write name=number,name=number")
        if name in weights:
            raise ChoiceError(f"--weights {text}: {name} is there twice")
        try:
            weights[name] = float(number)
        except ValueError as error:
            raise ChoiceError(f"--weights: {name}={number}: must be a number") from error
    return weights


def read_group(group: str) -> Options:
    """Return the options in a group of `config/metrics`, or in a file.

    Raises:
        ChoiceError: If there is no such group or file, or it is of another shape.
    """
    names = sorted(file.stem for file in GROUPS.glob("*.yaml"))
    named = group in names
    file = GROUPS / f"{group}.yaml" if named else Path(group)
    if not named and file.suffix not in (".yaml", ".yml"):
        there = ", ".join(names)
        raise ChoiceError(f"--metrics {group}: no such group; there are {there}, or FILE.yaml")
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ChoiceError(f"--metrics {group}: cannot be read: {error}") from error
    if not isinstance(content, dict) or not all(isinstance(own, dict) for own in content.values()):
        raise ChoiceError(f"--metrics {group}: expected metrics as `name: {{weight: number, ...}}`")
    return {str(name): own for name, own in content.items()}
