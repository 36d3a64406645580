"""Fenced blocks of a text, as models write Markdown.

Promises: fences of ``` and ~~~, indented or not; one without an end goes to the end of the
text. Linear in the text. Knows nothing of what a block is for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# A fence of backticks has no backtick after it, or it is code within a line.
_OPENS = re.compile(r"([ \t]*)(`{3,}(?=[^`]*$)|~{3,})[ \t]*([^\s`]*)")
# In these a fence with a language begins a block of the inner text: models do not lengthen
# the outer fence for it.
PROSE = frozenset({"markdown", "md", "text", "txt", "plaintext", "plain", "document", "article"})


@dataclass(frozen=True)
class Block:
    """One fenced block.

    Attributes:
        language: The first word after the fence in lower case, or "".
        body: The lines between, without the fence's own indentation.
    """

    language: str
    body: str


def fenced_blocks(text: str) -> Iterator[Block]:
    """Yield a text's fenced blocks in order."""
    lines = text.replace("\r\n", "\n").split("\n")
    start = 0
    while start < len(lines):
        opening = _OPENS.match(lines[start])
        if opening is None:
            start += 1
            continue
        indent, fence, language = opening.groups()
        language = language.strip("{}.").lower()
        end = _end(lines, start + 1, fence, nests=language in PROSE)
        body = (line.removeprefix(indent) for line in lines[start + 1 : end])
        yield Block(language, "\n".join(body))
        start = end + 1


def _end(lines: list[str], start: int, fence: str, nests: bool) -> int:
    """Return the line that closes a block, or the number of lines if none does."""
    depth = 1
    for number in range(start, len(lines)):
        line = lines[number].strip()
        if not line.startswith(fence):
            continue
        if not line.strip(fence[0]):
            depth -= 1
            if depth == 0:
                return number
        elif nests and _OPENS.match(line):
            depth += 1
    return len(lines)
