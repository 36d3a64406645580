"""Does a text mention a phrase? Words compared without case, accents of style or plurals.

Promises: pure; a phrase matches whole words in order, `*` stands for up to four words.
Knows nothing of goals, questions or languages other than English plurals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

_WORD = re.compile(r"[a-z0-9]+(?:[.,:'/-][a-z0-9]+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[.!?][\"')\]])\s+|\n+")
_GAP = 4
_FUNCTION_WORDS = frozenset(
    """
    a about an and any are as at be but by can do for from get had has have i if in into is it
    its may me more most must my no not of off on only or other our over so some than that the
    their them there they this to too up us very want was we what when which who will with
    would you your
    """.split()
)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, line breaks ending one too."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[str, ...]:
    """Return a text's words, lower case, plural endings removed."""
    plain = text.lower().replace("\u2019", "'").replace("*", " * ")
    return tuple(
        part if part == "*" else _stem(part) for part in re.findall(rf"{_WORD.pattern}|\*", plain)
    )


def _stem(word: str) -> str:
    word = word.removesuffix("'s")
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def mentions(text: str, phrase: str) -> bool:
    """Return whether `text` has the words of `phrase`, in order and side by side."""
    wanted = words(phrase)
    said = words(text)
    return bool(wanted) and any(_matches(said, start, wanted) for start in range(len(said)))


def mentions_any(text: str, phrases: Iterable[str]) -> bool:
    """Return whether `text` mentions one of `phrases`."""
    return any(mentions(text, phrase) for phrase in phrases)


def mentions_half(text: str, phrase: str) -> bool:
    """Return whether `text` has at least half of the content words of `phrase`, in any order."""
    content = [word for word in words(phrase) if word not in _FUNCTION_WORDS] or words(phrase)
    said = set(words(text))
    found = sum(word in said for word in content)
    return found > 0 and 2 * found >= len(content)


def _matches(said: Sequence[str], start: int, wanted: Sequence[str]) -> bool:
    if not wanted:
        return True
    if wanted[0] == "*":
        limit = min(start + _GAP, len(said))
        return any(_matches(said, after, wanted[1:]) for after in range(start, limit + 1))
    if start >= len(said) or said[start] != wanted[0]:
        return False
    return _matches(said, start + 1, wanted[1:])
