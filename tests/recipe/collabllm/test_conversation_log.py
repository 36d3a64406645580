"""The log of a step's conversations: what was written is read back, whatever was said."""

from __future__ import annotations

from pathlib import Path

from recipe.collabllm.conversation_log import logged_steps, read_step, write_step
from tests.recipe.collabllm.conftest import record


def test_line_separators_in_a_reply_end_no_record(tmp_path: Path) -> None:
    records = [record(reply="one\u2028two\u0085three\x0bfour\nfive"), record("q")]
    write_step(tmp_path, "train", 7, records)
    assert read_step(tmp_path, "train", 7) == records
    assert logged_steps(tmp_path, "train") == [7]
