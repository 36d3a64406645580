"""The `collabllm` part of the configuration, checked.

Promises: every key is known, every value is in range, metrics and users exist, before any
work begins; a fault names its key and says what to do.
Knows nothing of verl's own keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from interaction.registry import Connect, InteractionConfigError, load_users, read_interactions
from interaction.seeds import derive_seed
from interaction.user import SimulatedUser
from reward.allocation import FuturePlan
from reward.judge.judge import Judge
from reward.metric import Judged, Metric
from reward.multiturn_reward import reply_floor
from reward.registry import make_metrics
from reward.weights import check_weights
from serving.chat_client import ChatClient
from serving.chat_endpoint import endpoint_from


class SettingsError(ValueError):
    """A setting cannot be used; the message names it and the remedy."""


@dataclass(frozen=True)
class Settings:
    """See config/collabllm.yaml for each key's meaning, unit and default."""

    task: str
    preset: str
    run: str
    outputs: str
    seed: int
    K: int | str
    auto_K: Mapping[str, Any]
    window: int
    max_reply_tokens: int
    max_future_tokens: int
    max_user_tokens: int
    user: str
    interaction: tuple[Mapping[str, Any], ...]
    interaction_config_path: str | None
    user_endpoint: Mapping[str, Any] | None
    user_timeout_s: float
    user_attempts: int
    max_resamples: int
    metrics: Mapping[str, Mapping[str, Any]]
    judge_endpoint: Mapping[str, Any] | None
    judge: Mapping[str, Any]
    floor_margin: float
    max_failure_rate: float
    seed_parameter: str | None
    verbose: bool

    def __post_init__(self) -> None:
        if self.K != "auto":
            self._at_least(
                "K",
                1,
                "a reply is scored on at least one future, or auto; for the reply alone set "
                "collabllm.window=0",
            )
        self._at_least("window", 0, "0 scores the reply alone")
        for key in ("max_reply_tokens", "max_future_tokens", "max_user_tokens", "user_attempts"):
            self._at_least(key, 1, "it is a budget")
        if not self.user_timeout_s > 0:
            raise SettingsError(f"collabllm.user_timeout_s={self.user_timeout_s}: must be positive")
        self._at_least("max_resamples", 0, "0 plays no future again")
        if not 0 <= self.max_failure_rate <= 1:
            raise SettingsError(
                f"collabllm.max_failure_rate={self.max_failure_rate}: a share, from 0 to 1"
            )
        if not self.metrics:
            raise SettingsError("collabllm.metrics is empty: name at least one metric")
        if not self.run or "/" in self.run or self.run in (".", ".."):
            raise SettingsError(f"collabllm.run={self.run!r}: a folder name without '/'")

    def _at_least(self, key: str, least: int, why: str) -> None:
        value = getattr(self, key)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise SettingsError(f"collabllm.{key}={value}: a whole number from {least} up ({why})")

    def check_parts(self) -> None:
        """Make everything the settings name once.

        Raises:
            SettingsError: If a metric, weight or user cannot be used.
        """
        self._floor()
        _ = self.plan
        self.make_user()
        judge = self.make_judge()
        needing = [name for name, m in self.make_metrics().items() if isinstance(m, Judged)]
        if needing and judge is None:
            raise SettingsError(
                f"collabllm.metrics: {', '.join(needing)} asks a judge, and there is none: add "
                "judge=llm (or set collabllm.judge_endpoint), or leave it out"
            )

    def make_metrics(self) -> dict[str, Metric]:
        """Return the metrics by name.

        Raises:
            SettingsError: If one does not exist or has no such option.
        """
        try:
            return make_metrics(self.metrics)
        except ValueError as error:
            raise SettingsError(f"collabllm.metrics: {error}") from error

    @property
    def plan(self) -> FuturePlan | None:
        """How a group shares its futures with K=auto; None for K of every reply.

        Raises:
            SettingsError: If the numbers do not go together.
        """
        if self.K != "auto":
            return None
        try:
            return FuturePlan(**{k: v for k, v in self.auto_K.items() if k != "timeout_s"})
        except (TypeError, ValueError) as error:
            raise SettingsError(f"collabllm.auto_K: {error}") from error

    @property
    def mean_futures(self) -> int:
        """Futures of a reply, on average over its group."""
        return self.plan.mean if self.plan else int(self.K)

    @property
    def weights(self) -> dict[str, float]:
        """The metrics' weights by name.

        Raises:
            SettingsError: If one is missing or not a finite number, or all are 0.
        """
        chosen = {name: options.get("weight") for name, options in self.metrics.items()}
        try:
            return check_weights(chosen, list(self.metrics))
        except ValueError as error:
            raise SettingsError(f"collabllm.metrics.{error}") from error

    @property
    def floor(self) -> float:
        """What an unusable reply gets: below the worst R* there can be."""
        return self._floor()

    def _floor(self) -> float:
        metrics, weights = self.make_metrics(), self.weights
        try:
            return reply_floor(metrics, weights, self.floor_margin)
        except ValueError as error:
            raise SettingsError(f"collabllm.floor_margin: {error}") from error

    def make_user(self, connect: Connect | None = None) -> SimulatedUser:
        """Return the simulated user that `user` names.

        Args:
            connect: Makes the chat model of a user that has an endpoint.

        Raises:
            SettingsError: If there is none of that name or it cannot be made.
        """
        try:
            path = self.interaction_config_path
            entries = read_interactions(path) if path else self.interaction
            users = load_users(entries, path or "collabllm.interaction", connect or connect_user)
        except InteractionConfigError as error:
            raise SettingsError(str(error)) from error
        if self.user not in users:
            raise SettingsError(
                f"collabllm.user={self.user}: no such user; there are: {', '.join(sorted(users))}"
            )
        return users[self.user]

    def make_judge(self, connect: Connect | None = None) -> Judge | None:
        """Return the judge, or None without an endpoint for it.

        Args:
            connect: Makes the chat model of the judge's endpoint.

        Raises:
            SettingsError: If an option of it is unknown or bad.
        """
        if self.judge_endpoint is None:
            return None
        # The same in all processes and in the next run: kept answers are found again.
        key = derive_seed(self.seed, "judge").to_bytes(8, "big")
        try:
            model = (connect or connect_judge)(self.judge_endpoint)
            return Judge(model, key=key, **self.judge)
        except (TypeError, ValueError) as error:
            raise SettingsError(f"collabllm.judge: {error}") from error


def connect_user(endpoint: Mapping[str, Any]) -> ChatClient:
    """Return the chat model behind a user's endpoint.

    Raises:
        ValueError: If a key of it is unknown or bad, or its API key is not in the environment.
    """
    return ChatClient(endpoint_from(endpoint, "endpoint"), "user")


def connect_judge(endpoint: Mapping[str, Any]) -> ChatClient:
    """Return the chat model behind the judge's endpoint.

    Raises:
        ValueError: If a key of it is unknown or bad, or its API key is not in the environment.
    """
    return ChatClient(endpoint_from(endpoint, "judge_endpoint"), "judge")


def read_settings(raw: object) -> Settings:
    """Return the checked settings of a plain `collabllm` mapping.

    Raises:
        SettingsError: If a key is unknown or missing, or a value cannot be used.
    """
    if not isinstance(raw, Mapping):
        raise SettingsError(f"collabllm: expected a mapping, got {type(raw).__name__}")
    names = {field.name for field in fields(Settings)}
    unknown, missing = set(raw) - names, names - set(raw)
    if unknown or missing:
        what = f"unknown {sorted(unknown)}" if unknown else f"missing {sorted(missing)}"
        raise SettingsError(f"collabllm: {what}; the keys are {', '.join(sorted(names))}")
    if not isinstance(raw["metrics"], Mapping) or not all(
        isinstance(chosen, Mapping) for chosen in raw["metrics"].values()
    ):
        raise SettingsError("collabllm.metrics: expected name: {weight: number, ...}")
    settings = Settings(**{**raw, "interaction": tuple(raw["interaction"] or ())})
    settings.check_parts()
    return settings
