"""Settings and records for the recipe's tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recipe.collabllm.record import FutureRecord, Outcome, ReplyRecord
from recipe.collabllm.settings import Settings, read_settings

AGENDA = {"name": "agenda", "class_name": "interaction.agenda_user.AgendaUser", "config": {}}


def raw_settings(**changes: Any) -> dict[str, Any]:
    """Return settings as the configuration holds them."""
    return {
        "task": "planning",
        "preset": "quick",
        "run": "test",
        "outputs": "outputs",
        "seed": 1,
        "K": 2,
        "auto_K": {"mean": 3, "first": 1, "most": 5, "timeout_s": 60},
        "window": 1,
        "max_reply_tokens": 48,
        "max_future_tokens": 40,
        "max_user_tokens": 64,
        "user": "agenda",
        "interaction": [AGENDA],
        "interaction_config_path": None,
        "user_endpoint": None,
        "user_timeout_s": 5.0,
        "user_attempts": 1,
        "max_resamples": 0,
        "judge_endpoint": None,
        "judge": {"calls": "one", "attempts": 2, "max_tokens": None},
        "metrics": {
            "goal_elicited": {"weight": 1.0},
            "token_amount": {"weight": 0.25, "lam": 0.01, "tokens": "policy"},
        },
        "floor_margin": 0.1,
        "max_failure_rate": 0.2,
        "seed_parameter": "seed",
        "verbose": False,
        **changes,
    }


@pytest.fixture
def limits(tmp_path: Path) -> Path:
    """A folder of its own for an endpoint's limits, so that tests do not wait for each other."""
    return tmp_path / "limits"


@pytest.fixture
def settings() -> Settings:
    return read_settings(raw_settings())


def record(uid: str = "p", session: int = 0, mr: float | None = 0.5, **changes: Any) -> ReplyRecord:
    """Return a scored record, or one left out if `mr` is None."""
    known: dict[str, Any] = {
        "uid": uid,
        "session": session,
        "step": 3,
        "split": "train",
        "task_id": f"task {uid}",
        "family": "planning",
        "data_source": "planning",
        "context": "opening",
        "seed": 1,
        "prompt": [{"role": "user", "content": "I want to go on a trip."}],
        "reply": "Which city?",
        "reply_tokens": 4,
        "fault": None,
        "futures": [FutureRecord(0, 1, 2, stop="window", reward=mr)],
        "outcome": Outcome.SCORED if mr is not None else Outcome.LEFT_OUT,
        "mr": mr,
        "per_metric": {"goal_elicited": 0.5},
        "n_valid": 1 if mr is not None else 0,
    }
    return ReplyRecord(**{**known, **changes})
