"""The notebook in docs/ runs from top to bottom and shows what it has stored."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.conftest import PROJECT

NOTEBOOK = PROJECT / "docs" / "reward.ipynb"


def shown(notebook: Any) -> list[list[Any]]:
    """Return what each cell of code shows, without the numbers of its runs."""
    return [
        [(output.output_type, output.get("text"), output.get("data")) for output in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


@pytest.fixture(scope="module")
def stored() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)


def test_the_stored_outputs_are_what_the_cells_say_today(
    stored: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    fresh = nbformat.from_dict(stored)
    for cell in fresh.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    resources = {"metadata": {"path": str(NOTEBOOK.parent)}}
    NotebookClient(fresh, timeout=120, kernel_name="python3", resources=resources).execute()
    assert shown(fresh) == shown(nbformat.read(NOTEBOOK, as_version=4))


def test_it_shows_scores_a_reward_failures_and_the_floor(stored: Any) -> None:
    told = str(shown(stored))
    words = ("goal_elicited", "MR = ", "ends on a user turn", "no valid future", "-0.35")
    assert all(word in told for word in words) and "error" not in told
