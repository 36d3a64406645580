r"""Fences around data in a prompt, each with a nonce that nobody can guess.

    <transcript 5d0c9a41e7b2f836>
    {"turn": 1, "role": "user", "text": "Hi"}
    </transcript 5d0c9a41e7b2f836>

The nonce is a keyed hash of what stands inside: who writes the inside has not the key, and any
change of the inside changes it. The same inside has the same nonce, so a prefix cache and an
answer cache work.
Promises: what was fenced is read back, line by line. Knows nothing of what the lines say; they
come from `quoted`, so none is a fence.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Sequence

_BYTES = 8


def fenced(name: str, lines: Sequence[str], key: bytes, salt: str = "") -> str:
    """Return lines between an opening and a closing fence.

    Args:
        name: What the block is, an identifier.
        lines: Each one without a line end.
        key: What the nonce is hashed with; no policy may learn it.
        salt: Whatever else should change the nonce.
    """
    body = "\n".join(lines)
    nonce = _nonce(body, key, f"{name} {salt}")
    return f"<{name} {nonce}>\n{body}\n</{name} {nonce}>"


def read_fenced(text: str, name: str) -> list[str]:
    """Return the lines of the one block of a name.

    Raises:
        ValueError: If there is no such block, or more than one.
    """
    opened = re.findall(rf"^<{name} ([0-9a-f]{{{2 * _BYTES}}})>$", text, re.M)
    if len(opened) != 1:
        raise ValueError(f"{len(opened)} blocks begin with the name {name!r}, not 1")
    _, rest = text.split(f"<{name} {opened[0]}>\n")
    parts = rest.split(f"\n</{name} {opened[0]}>")
    if len(parts) != 2:
        raise ValueError(f"the block {name!r} ends {len(parts) - 1} times")
    return parts[0].split("\n")


def _nonce(body: str, key: bytes, salt: str) -> str:
    for draw in itertools.count():
        text = f"{draw} {salt}\n{body}".encode()
        nonce = hashlib.blake2b(text, key=key, digest_size=_BYTES).hexdigest()
        if nonce not in body:
            return nonce
    raise AssertionError("there is always another draw")
