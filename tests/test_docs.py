"""The documentation speaks of what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import PROJECT

PAGES = [
    PROJECT / "README.md",
    PROJECT / "CONTRIBUTING.md",
    *sorted((PROJECT / "docs").glob("*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_named_in_code_exists(page: Path) -> None:
    named = re.findall(r"`((?:interaction|reward|serving|data|evaluation|recipe|scripts|benchmarks)/[\w/.*-]+)`",
                       page.read_text(encoding="utf-8"))  # fmt: skip
    for name in (n for n in named if "." in n or n.endswith("/")):
        assert list(PROJECT.glob(name.rstrip("/"))), name


def test_the_test_command_of_the_readme_is_what_ci_calls() -> None:
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    assert "bash scripts/test.sh" in readme
    assert "bash scripts/test.sh" in (PROJECT / ".ci" / "run").read_text(encoding="utf-8")
