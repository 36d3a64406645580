"""Hostile values as one line of JSON that can be nothing but data.

JSON keeps line ends and quotes inside a string. Three more kinds of character are escaped:
angle brackets, which fences and the control tokens of chat templates are made of; what becomes
one of the marks of JSON or a fence when a tokenizer folds look-alikes (NFKC); and what cannot
be seen: controls, bidi marks, zero-width and unassigned characters, private use.
Promises: pure; `json.loads` gives exactly the value back. Knows nothing of prompts.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import lru_cache

# Invisible by default, and yet printable to `str.isprintable`: joiners, fillers, selectors.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
# Control tokens in square brackets, [INST] and its like. Code and lists stay readable.
_BRACKETED = re.compile(r"\[(?=/?[A-Z][A-Z_]*\]|gMASK\])")
_MARKS = frozenset('<>[]"\\')


def quoted(value: object) -> str:
    """Return a JSON value on one line, harmless wherever it is put.

    Raises:
        ValueError: If a text holds half a surrogate pair, which no endpoint can be sent.
    """
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _BRACKETED.sub(r"\\u005b", "".join(map(_shown, line)))


@lru_cache(maxsize=4096)
def _shown(char: str) -> str:
    """Return one character of JSON as it is, or escaped."""
    if char.isascii():
        return char if char.isprintable() and char not in "<>" else _escaped(char)
    hidden = not char.isprintable() or _INVISIBLE.match(char)
    folds = not _MARKS.isdisjoint(unicodedata.normalize("NFKC", char))
    return _escaped(char) if hidden or folds else char


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
