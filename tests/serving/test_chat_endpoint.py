"""The record of an endpoint: clear errors, and no key anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from serving.chat_endpoint import ChatEndpoint, endpoint_from

LOCAL = {"model": "m", "base_url": "http://localhost:8000/v1"}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"tempratur": 1}, "judge.tempratur: no such key; there are .*temperature"),
        ({"concurrency": 0}, "judge.concurrency"),
        ({"base_url": "localhost:8000"}, "judge.base_url: .*http://localhost:8000/v1"),
        ({"base_url": "http://me:secret@host/v1"}, "judge.base_url: .*api_key_env"),
        ({"structured_output": "xml"}, "judge.structured_output"),
        ({"model": ""}, "judge.model"),
        ({"api_key": "sk-secret"}, "judge.api_key: no such key"),
        ({"api_key_env": "sk-secret"}, "judge.api_key_env"),
    ],
)
def test_a_bad_key_is_named_and_its_value_is_not_shown(
    change: dict[str, object], named: str
) -> None:
    with pytest.raises(ValueError, match=named) as caught:
        endpoint_from({**LOCAL, **change}, "judge")
    assert "secret" not in str(caught.value)


def test_a_missing_key_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(ValueError, match="MY_KEY is not set: `export MY_KEY="):
        endpoint_from({**LOCAL, "api_key_env": "MY_KEY"}, "user").api_key()


def test_openai_has_its_usual_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ValueError, match="OPENAI_API_KEY"):
        ChatEndpoint(model="gpt").api_key()


def test_a_local_endpoint_never_sees_the_key_of_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert endpoint_from(LOCAL, "user").api_key() == "none"


def test_the_key_is_in_no_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret")
    endpoint = endpoint_from({**LOCAL, "api_key_env": "MY_KEY"}, "user")
    assert endpoint.api_key() == "sk-secret"
    assert "secret" not in f"{endpoint!r}{endpoint}{endpoint.model_dump_json()}"


def test_limits_are_shared_by_url_and_model(tmp_path: Path) -> None:
    def folder(**change: str) -> Path:
        return endpoint_from({**LOCAL, "limits_dir": tmp_path, **change}, "user").limits_folder

    assert folder() == folder(base_url="http://localhost:8000/v1/")
    assert len({folder(), folder(model="n"), folder(base_url="http://other/v1")}) == 3


def test_a_cost_needs_both_prices() -> None:
    endpoint = endpoint_from({**LOCAL, "price_per_million_prompt": 2}, "user")
    assert endpoint.cost(1e6, 1e6) is None
    endpoint = endpoint_from(endpoint.model_dump() | {"price_per_million_completion": 3}, "user")
    assert endpoint.cost(1e6, 2e6) == pytest.approx(8)
