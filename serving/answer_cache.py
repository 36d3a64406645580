"""Answers kept on disk, by the request they answer.

Promises: a file is whole or not there; one that cannot be read is a miss, and a cache that
cannot be written costs nothing but the hit.
Knows nothing of when a request may be answered from memory.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)


class AnswerCache:
    """A folder of answers.

    Args:
        folder: Made when the first answer is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, request: Mapping[str, Any]) -> str | None:
        """Return the answer kept for a request, or None."""
        try:
            kept = json.loads(self._path(request).read_text(encoding="utf-8"))
            text = kept["text"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return text if isinstance(text, str) and text.strip() else None

    def put(self, request: Mapping[str, Any], text: str) -> None:
        """Keep an answer."""
        path = self._path(request)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
            with os.fdopen(file, "w", encoding="utf-8") as writer:
                json.dump({"text": text}, writer)
            Path(name).replace(path)
        except OSError as error:
            logger.warning("the answer cache in %s cannot be written: %s", self._folder, error)

    def _path(self, request: Mapping[str, Any]) -> Path:
        name = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
        return self._folder / name[:2] / f"{name}.json"
