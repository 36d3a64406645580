"""Settings: every mistake is named before work begins."""

from __future__ import annotations

from typing import Any

import pytest

from interaction.agenda_user import AgendaUser
from recipe.collabllm.settings import SettingsError, read_settings
from tests.recipe.collabllm.conftest import AGENDA, raw_settings


def test_good_settings_give_metrics_weights_floor_and_user() -> None:
    settings = read_settings(raw_settings())
    assert settings.weights == {"goal_elicited": 1.0, "token_amount": 0.25}
    assert settings.floor == pytest.approx(-0.35)
    assert isinstance(settings.make_user(), AgendaUser)


def test_a_window_of_zero_is_allowed() -> None:
    assert read_settings(raw_settings(window=0)).window == 0


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"K": 0}, "collabllm.K=0: a whole number from 1 up"),
        ({"K": "auto", "auto_K": {"mean": 2, "first": 2, "most": 4}}, "collabllm.auto_K: "),
        ({"K": "auto", "auto_K": {"mean": 2}}, "collabllm.auto_K: .*first"),
        ({"K": "many"}, "collabllm.K=many"),
        ({"K": 1.5}, "collabllm.K=1.5"),
        ({"K": True}, "collabllm.K=True"),
        ({"window": -1}, "collabllm.window=-1"),
        ({"max_reply_tokens": 0}, "collabllm.max_reply_tokens=0"),
        ({"user_timeout_s": 0}, "collabllm.user_timeout_s=0: must be positive"),
        ({"max_failure_rate": 2}, "a share, from 0 to 1"),
        ({"metrics": {}}, "collabllm.metrics is empty"),
        ({"metrics": {"nope": {"weight": 1}}}, "unknown metric 'nope'; there are: accuracy"),
        ({"metrics": {"accuracy": {"weight": "x"}}}, "accuracy.weight=x: must be a number"),
        ({"metrics": {"accuracy": {}}}, "accuracy.weight=None"),
        ({"metrics": {"accuracy": {"weight": float("nan")}}}, "accuracy.weight=nan"),
        ({"metrics": {"accuracy": {"weight": 0}}}, "weights of accuracy are all 0"),
        ({"metrics": {"interactivity": {"weight": 1}}}, "interactivity asks a judge.*judge=llm"),
        ({"judge_endpoint": {"model": "m"}, "judge": {"calls": "two"}}, "collabllm.judge"),
        ({"judge_endpoint": {"modell": "m"}}, r"judge_endpoint\.modell: no such key"),
        ({"max_resamples": -1}, "collabllm.max_resamples=-1"),
        ({"metrics": {"accuracy": 1}}, "expected name: {weight: number"),
        ({"metrics": {"token_amount": {"weight": 1, "lam": 0}}}, "lam must be greater than 0"),
        ({"metrics": {"token_amount": {"weight": 1, "cost": 1}}}, "'token_amount'.*'cost'"),
        ({"floor_margin": 0}, "margin must be positive"),
        ({"user": "bob"}, "collabllm.user=bob: no such user; there are: agenda"),
        ({"interaction": [{**AGENDA, "class_name": "x.Y"}]}, "No module named 'x'"),
        ({"interaction_config_path": "/none.yaml"}, "/none.yaml: cannot be read"),
        ({"run": "a/b"}, "a folder name without '/'"),
        ({"run": ".."}, "a folder name"),
        ({"colour": "red"}, r"unknown \['colour'\]"),
    ],
)
def test_a_mistake_is_named_with_its_key(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        read_settings(raw_settings(**changes))


def test_a_missing_key_is_named() -> None:
    raw = raw_settings()
    del raw["K"]
    with pytest.raises(SettingsError, match=r"missing \['K'\]"):
        read_settings(raw)
