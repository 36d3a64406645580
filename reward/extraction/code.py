"""The code the policy finally delivered.

The last fenced block of a programming language over all turns. Not that: a block that shows
output (tagged `output`, `text`, `console`, ...), and one that defines nothing and calls what an
earlier block defined, which is an example of its use. A block without a language counts as code
if it defines something, or if no block has a language; shell commands count if there is nothing
else. Promises: pure. Knows nothing of running code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from interaction.spoken import without_thinking
from reward.extraction.fences import PROSE, Block, fenced_blocks

_SHOWN = PROSE | frozenset(
    "output stdout stderr result results console terminal log logs traceback error csv".split()
)
_SHELL = frozenset("bash sh shell zsh cmd powershell shell-session".split())
# What tests a solution is not one.
_DEFINED = re.compile(
    r"^\s*(?:\w+\s+)*?(?:def|class|function|func|fn)\s+(?!test)(\w+)", re.M | re.I
)


def final_code(texts: Sequence[str]) -> str | None:
    """Return the code of the policy's turns, or None if there is none.

    Args:
        texts: The policy's turns in order.
    """
    blocks = [b for text in texts for b in fenced_blocks(without_thinking(text)) if b.body.strip()]
    named = [b for b in blocks if b.language not in _SHOWN | _SHELL and (b.language or _names(b))]
    untagged = [b for b in blocks if not b.language]
    shell = [b for b in blocks if b.language in _SHELL]
    candidates = named or untagged or shell
    return _last_solution(candidates).body if candidates else None


def _last_solution(blocks: list[Block]) -> Block:
    """Return the last block that is not an example of an earlier one's use."""
    defined: set[str] = set()
    solution = blocks[0]
    for block in blocks:
        names = _names(block)
        called = set(re.findall(r"(\w+)\s*\(", block.body))
        if names or not defined & called:
            solution = block
        defined |= names
    return solution


def _names(block: Block) -> set[str]:
    """Return the functions and classes that a block defines."""
    return set(_DEFINED.findall(block.body))
