"""Namespaces: a process that sees no other process, no network and hardly any file.

Promises: the new root holds the given paths, read-only, four devices and an empty /tmp in memory
that vanishes with the process; nothing on the machine's disks can be written. Knows nothing of
who runs there.
"""

from __future__ import annotations

import os
from contextlib import suppress

from . import kernel

_SPACES = (
    kernel.CLONE_NEWNS
    | kernel.CLONE_NEWPID
    | kernel.CLONE_NEWNET
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUTS
)
_UNSAFE = kernel.MS_NOSUID | kernel.MS_NODEV  # what is left out
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_BASE = "/proc"  # where the new root is built: nothing below it is wanted there
_TMP = f"{_BASE}/tmp"  # noqa: S108


def separate() -> bool:
    """Leave all namespaces; the next child will be alone. Return whether as real root.

    Raises:
        OSError: If the kernel or what contains this process does not allow it.
    """
    if os.geteuid() == 0:
        try:
            kernel.unshare(_SPACES)
        except OSError:
            pass  # root without CAP_SYS_ADMIN, as in most containers
        else:
            return True
    user, group = os.geteuid(), os.getegid()
    kernel.unshare(_SPACES | kernel.CLONE_NEWUSER)
    with suppress(OSError):  # root without CAP_SETFCAP: alone, but it cannot build a root
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    return False


def build_root(visible: list[str], tmp_bytes: int) -> None:
    """Replace the root by one that holds only `visible`, devices and an empty /tmp.

    Raises:
        OSError: If that is not allowed; the old root is still there.
        RuntimeError: If it went wrong half-way; nothing may run then.
    """
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", _BASE, "tmpfs", kernel.MS_NOSUID, "mode=755,size=1m")
    os.mkdir(_TMP)  # noqa: PTH102
    options = f"mode=1777,size={tmp_bytes},nr_inodes=4096"
    kernel.mount("tmpfs", _TMP, "tmpfs", _UNSAFE | kernel.MS_NOEXEC, options)
    for path in _outermost(visible):
        _show(path)
        kernel.mount_read_only(f"{_BASE}{path}")
    for device in _DEVICES:
        _show(device)
    os.mkdir(f"{_BASE}/old")  # noqa: PTH102
    kernel.enter_root(_BASE, "old")
    try:
        kernel.unmount("/old")
        os.rmdir("/old")  # noqa: PTH106
        only_read = kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY
        kernel.mount("none", "/", "", only_read | _UNSAFE)
    except OSError as error:
        raise RuntimeError("the old root cannot be dropped") from error


def _outermost(paths: list[str]) -> list[str]:
    kept: list[str] = []
    for path in sorted(set(paths)):
        if not kept or not path.startswith(kept[-1].rstrip("/") + "/"):
            kept.append(path)
    return kept


def _show(path: str) -> None:
    target = f"{_BASE}{path}"
    if os.path.isdir(path):  # noqa: PTH112
        os.makedirs(target, mode=0o755, exist_ok=True)  # noqa: PTH103
    else:
        os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)  # noqa: PTH103, PTH120
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    kernel.mount(path, target, "", kernel.MS_BIND | kernel.MS_REC)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123
        file.write(text)
