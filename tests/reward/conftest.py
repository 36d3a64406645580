"""What tests of the reward share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def limits(tmp_path: Path) -> Path:
    """A folder of its own for the limits, so that tests do not wait for each other."""
    return tmp_path / "limits"
