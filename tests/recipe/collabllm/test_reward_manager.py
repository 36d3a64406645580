"""verl's reward manager: the reply's reward, and NaN for what is to be left out."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf
from tensordict import TensorDict
from transformers import AutoTokenizer
from verl import DataProto

from interaction.task import Task
from recipe.collabllm.record import FutureRecord, ReplyRecord
from recipe.collabllm.reward_manager import CollabLLMRewardManager
from tests.recipe.collabllm.conftest import raw_settings, record


@pytest.fixture(scope="module")
def manager(smollm2: Path) -> CollabLLMRewardManager:
    config = OmegaConf.create({"collabllm": raw_settings()})
    return CollabLLMRewardManager(config, AutoTokenizer.from_pretrained(smollm2))


def score(manager: CollabLLMRewardManager, task: Task, *records: ReplyRecord) -> dict[str, Any]:
    """Score one sample with an output for each record, as verl hands it over."""
    fields = np.empty(len(records), dtype=object)
    fields[:] = [{"task": task.to_json(), "record": r.to_json()} for r in records]
    batch = TensorDict({"responses": torch.zeros(len(records), 3)}, batch_size=len(records))
    data = DataProto(batch=batch, non_tensor_batch={"tool_extra_fields": fields})
    return asyncio.run(manager.run_single(data))


PLAYED = FutureRecord(
    0, 1, 2, messages=[{"role": "user", "content": "I need to Lisbon."}], stop="user_done"
)


def test_a_reply_gets_its_multiturn_aware_reward(
    manager: CollabLLMRewardManager, trip: Task
) -> None:
    result = score(manager, trip, record(futures=[PLAYED]))
    told = ReplyRecord.from_json(result["reward_extra_info"]["record"])
    assert result["reward_score"] == told.mr == pytest.approx(1 / 3 - 0.25 * 0.01 * 3)
    assert result["reward_extra_info"]["goal_elicited"] == pytest.approx(1 / 3)


def test_a_reply_to_be_left_out_is_not_a_number(
    manager: CollabLLMRewardManager, trip: Task
) -> None:
    result = score(manager, trip, record(futures=[PLAYED.failed("user: down")]))
    assert math.isnan(result["reward_score"])


def test_of_several_outputs_the_last_is_scored(manager: CollabLLMRewardManager, trip: Task) -> None:
    first, last = record(futures=[PLAYED]), replace(record(), fault="length", futures=[])
    assert score(manager, trip, first, last)["reward_score"] == pytest.approx(-0.35)
