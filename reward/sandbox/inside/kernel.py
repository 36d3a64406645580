"""Calls into the Linux kernel that Python has no function for.

Promises: an `OSError` where the kernel says no. Knows nothing of what they are for.
"""

from __future__ import annotations

import ctypes
import os

X86 = os.uname().machine == "x86_64"
ARM = os.uname().machine == "aarch64"

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

CLONE_THREAD = 0x00010000
CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
_MNT_DETACH = 2
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MOUNT_SETATTR = 442
_PIVOT_ROOT = 155 if X86 else 41
_CAPABILITIES_V3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(number: int, *arguments: object) -> int:
    """Make a system call; integers are passed as longs."""
    longs = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return _checked(int(_libc.syscall(ctypes.c_long(number), *longs)), f"system call {number}")


def prctl(option: int, *arguments: object) -> None:
    """Change a property of this process."""
    padded = [*arguments, 0, 0, 0, 0][:4]
    longs = [ctypes.c_ulong(a) if isinstance(a, int) else a for a in padded]
    _checked(int(_libc.prctl(option, *longs)), f"prctl {option}")


def unshare(flags: int) -> None:
    """Leave namespaces for new ones."""
    _checked(int(_libc.unshare(flags)), "unshare")


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """Mount something."""
    result = _libc.mount(
        source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()
    )
    _checked(int(result), f"mount {target}")


def mount_read_only(target: str) -> None:
    """Make a mount and all below it read-only, without devices and set-uid programs."""
    attributes = (ctypes.c_uint64 * 4)(MS_RDONLY | MS_NOSUID | MS_NODEV, 0, 0, 0)
    path = ctypes.c_char_p(target.encode())
    syscall(_MOUNT_SETATTR, _AT_FDCWD, path, _AT_RECURSIVE, attributes, 32)


def enter_root(new_root: str, old_root: str) -> None:
    """Make a mounted folder the root and drop the old one.

    Args:
        new_root: The folder.
        old_root: Name of an empty folder in it where the old root is until it is dropped.
    """
    new, old = new_root.encode(), f"{new_root}/{old_root}".encode()
    syscall(_PIVOT_ROOT, ctypes.c_char_p(new), ctypes.c_char_p(old))
    os.chdir("/")


def unmount(target: str) -> None:
    """Take a mount and all below it away."""
    _checked(int(_libc.umount2(target.encode(), _MNT_DETACH)), f"unmount {target}")


def drop_capabilities() -> None:
    """Give up all of root's powers."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_V3, 0)
    _checked(int(_libc.capset(header, (ctypes.c_uint32 * 6)())), "capset")
