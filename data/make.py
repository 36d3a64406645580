"""Makes a family's training and validation files in a folder, once per setting.

Promises: the folder's name is made of the settings, so that a second run finds the files and
other settings get files of their own; files are checked whenever they are used.
Knows nothing of training.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from data.example import Example
from data.gsm8k import build_math
from data.parquet import DataError, check_file, check_splits, write_rows
from data.planning.build import build_planning

Builder = Callable[..., tuple[list[Example], list[Example]]]
FAMILIES: Mapping[str, Builder] = {"math": build_math, "planning": build_planning}
_PACKAGE = Path(__file__).parent


@dataclass(frozen=True)
class DataFiles:
    """Where a data set lies, and whether it was made just now."""

    train: Path
    validation: Path
    fresh: bool


def make_data(family: str, options: Mapping[str, Any], folder: str | Path) -> DataFiles:
    """Make the files, or find those made before with the same settings.

    Args:
        family: "planning" or "math".
        options: The family's settings; see the builders.
        folder: Where data sets lie; this one gets a folder in it.

    Raises:
        DataError: If the family or a setting is not right, or the source cannot be used.
    """
    if family not in FAMILIES:
        raise DataError(f"unknown task family {family!r}; there are: {', '.join(sorted(FAMILIES))}")
    target = Path(folder) / f"{family}-{_fingerprint(family, options)}"
    files = DataFiles(target / "train.parquet", target / "validation.parquet", fresh=False)
    if not (files.train.exists() and files.validation.exists()):
        try:
            train, validation = FAMILIES[family](**options)
        except TypeError as error:
            raise DataError(f"family {family!r}: {error}") from error
        write_rows(files.train, train, "train")
        write_rows(files.validation, validation, "validation")
        files = DataFiles(files.train, files.validation, fresh=True)
    check_file(files.train)
    check_file(files.validation)
    check_splits(files.train, files.validation)
    return files


def _fingerprint(family: str, options: Mapping[str, Any]) -> str:
    """Return a name for settings, the content of their source, and the code that makes rows."""
    settings = dict(options)
    if settings.get("source"):
        path = Path(settings["source"])
        if not path.is_file():
            raise DataError(f"{path}: no such file; set data.source to an existing one")
        settings["source"] = blake2b(path.read_bytes(), digest_size=8).hexdigest()
    digest = blake2b(digest_size=4)
    for file in sorted(_PACKAGE.rglob("*")):
        if file.suffix in (".py", ".yaml"):
            digest.update(file.read_bytes())
    digest.update(json.dumps([family, settings], sort_keys=True, default=str).encode())
    return digest.hexdigest()
