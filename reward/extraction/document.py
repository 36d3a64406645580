"""The document the policy finally wrote.

Each turn offers one: its last ```markdown or ```text block or what stands between tags such as
<document>...</document>; else a block without a language that is most of the turn; else its
text without the talk around it ("Here is the new version:", "Shall I change anything?"). The
last turn wins that marks its document, or whose text has at least half as many words as the
longest; so a revision beats what it revises, and thanks, questions and remarks beat nothing.
Promises: pure; any text is survived. Knows nothing of what the document should say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from interaction.spoken import without_thinking
from reward.extraction.fences import PROSE, fenced_blocks

_TAG = r"(?:final[ _-]?)?(?:document|article|essay|draft|story|letter|email|version|text)"
_OPENED = re.compile(rf"<({_TAG})>", re.I)
_LONGEST_PREAMBLE = 40  # words
_LONGEST_CLOSING = 60
_CLOSING = re.compile(
    r"(?:let me know|feel free|i hope|hope this|please (?:tell|let)|if you|would you|"
    r"you(?:'|\u2019)re welcome|thank|thanks|glad|happy to|enjoy|good luck|is there)\b",
    re.I,
)


@dataclass(frozen=True)
class _Offer:
    """What one turn offers as the document."""

    text: str
    marked: bool

    @property
    def words(self) -> int:
        return len(self.text.split())


def final_document(texts: Sequence[str]) -> str | None:
    """Return the document of the policy's turns, or None if there is none.

    Args:
        texts: The policy's turns in order.
    """
    offers = [offer for text in texts if (offer := _offer(without_thinking(text))).text]
    longest = max((offer.words for offer in offers), default=0)
    for offer in reversed(offers):
        if offer.marked or 2 * offer.words >= longest:
            return offer.text
    return None


def _offer(text: str) -> _Offer:
    marked = _tagged(text) or _fenced(text)
    return _Offer(marked, True) if marked else _Offer(_without_talk(text), False)


def _tagged(text: str) -> str:
    """Return what stands between the last pair of tags, or "" if there is none."""
    found, position, lowered = "", 0, text.lower()
    while opened := _OPENED.search(text, position):
        closing = f"</{opened[1]}>".lower()
        end = lowered.find(closing, opened.end())
        found = text[opened.end() : end if end >= 0 else len(text)].strip() or found
        if end < 0:
            break
        position = end + len(closing)
    return found


def _fenced(text: str) -> str:
    """Return the last block of prose, or one without a language that is most of the text."""
    found, words = "", len(text.split())
    for block in fenced_blocks(text):
        most = not block.language and 2 * len(block.body.split()) >= words
        if block.language in PROSE or most:
            found = block.body.strip() or found
    return found


def _without_talk(text: str) -> str:
    """Return a turn's paragraphs without the talk before and after, "" if it is all talk."""
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip(" \t\n-*_=")]
    if len(paragraphs) > 1 and _is_preamble(paragraphs[0]):
        paragraphs = paragraphs[1:]
    while paragraphs and _is_closing(paragraphs[-1]):
        paragraphs = paragraphs[:-1]
    lines = [line for part in paragraphs for line in part.split("\n")]
    asked = sum(line.rstrip(" *_").endswith("?") for line in lines)
    return "" if 2 * asked >= len(lines) else "\n\n".join(paragraphs)


def _is_preamble(paragraph: str) -> bool:
    return paragraph.endswith(":") and len(paragraph.split()) <= _LONGEST_PREAMBLE


def _is_closing(paragraph: str) -> bool:
    if len(paragraph.split()) > _LONGEST_CLOSING:
        return False
    return paragraph.rstrip(" *_").endswith("?") or _CLOSING.match(paragraph) is not None
