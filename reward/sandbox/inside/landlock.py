"""Landlock: which files a process may read and write, for good.

Promises: what is not listed can be neither opened nor listed nor changed; no TCP where the kernel
is new enough (6.7), no signals to others (6.12). Knows nothing of namespaces; works without.
"""

from __future__ import annotations

import ctypes
import os

from . import kernel

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_RIGHTS_OF_ABI_1 = (1 << 13) - 1
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_TCP = 0b11  # bind, connect
_SCOPES = 0b11  # abstract sockets, signals


class _Rule(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def restrict(readable: list[str], writable: list[str]) -> None:
    """Allow reading below `readable`, everything below `writable`, and no other file.

    Raises:
        OSError: If the kernel has no Landlock.
    """
    abi = kernel.syscall(_CREATE, None, 0, 1)
    rights = _rights(abi)
    words = (rights,) if abi < 4 else (rights, _TCP) if abi < 6 else (rights, _TCP, _SCOPES)
    attributes = (ctypes.c_uint64 * len(words))(*words)
    ruleset = kernel.syscall(_CREATE, attributes, ctypes.sizeof(attributes), 0)
    for path in readable:
        _allow(ruleset, path, _READ_FILE | _READ_DIR)
    for path in writable:
        _allow(ruleset, path, rights)
    kernel.syscall(_RESTRICT, ruleset, 0)
    os.close(ruleset)


def _rights(abi: int) -> int:
    later = (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0)
    return _RIGHTS_OF_ABI_1 | later | (_IOCTL if abi >= 5 else 0)


def _allow(ruleset: int, path: str, rights: int) -> None:
    if not os.path.exists(path):  # noqa: PTH110
        return
    if not os.path.isdir(path):  # noqa: PTH112
        rights &= _READ_FILE | _WRITE_FILE
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    kernel.syscall(_ADD_RULE, ruleset, 1, ctypes.byref(_Rule(rights, parent)), 0)
    os.close(parent)
