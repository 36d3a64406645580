"""The embedded model: it chats, and what is wrong with its package is found."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from serving import smollm2 as module
from serving.smollm2 import ModelError, check_chat, make_smollm2


def test_the_model_answers_a_question(smollm2: Path) -> None:
    assert "Paris" in check_chat(smollm2)


def test_a_folder_that_is_there_is_left_alone(smollm2: Path) -> None:
    told: list[str] = []
    assert make_smollm2(smollm2, told.append) == smollm2
    assert told == []


def test_a_package_of_other_content_is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GGUF_SHA256", "0" * 64)
    with pytest.raises(ModelError, match="has sha256"):
        make_smollm2(tmp_path / "model", lambda text: None)
    assert list(tmp_path.iterdir()) == []


def test_a_package_that_cannot_be_fetched_tells_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_network(*args: object, **kwargs: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], 1, "", "no matching distribution")

    monkeypatch.setattr(module.subprocess, "run", no_network)
    with pytest.raises(ModelError, match="path=FOLDER.*no matching distribution"):
        make_smollm2(tmp_path / "model", lambda text: None)
