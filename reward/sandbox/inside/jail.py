"""Locks a process in, layer by layer, and says which layers hold.

Promises: `fork_jailed` returns in the parent; the child runs `body` with every layer that the
machine allows, told which; a layer that is not possible is left out, never half on. Whether what
holds is enough is decided by `body`. Knows nothing of code, tests or queries.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress

from . import kernel, landlock, namespaces, seccomp

NAMESPACES = "namespaces"
OWN_ROOT = "own_root"
LANDLOCK = "landlock"
SECCOMP = "seccomp"
UNPRIVILEGED = "unprivileged"
RLIMITS = "rlimits"
LAYERS = (NAMESPACES, OWN_ROOT, LANDLOCK, SECCOMP, UNPRIVILEGED, RLIMITS)

# Above any account's.
_FIRST_UID = 1_000_000_000
_NOBODY = 65534
_SYSTEM_PATHS = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/share/zoneinfo",
    "/etc/ld.so.cache",
    "/etc/localtime",
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")

Body = Callable[[list[str]], None]
Settings = Mapping[str, object]


def fork_jailed(settings: Settings, kept: list[int], body: Body) -> int:
    """Run `body` in a child that is locked in.

    Args:
        settings: `visible` (paths), `without` (layers), `limits` (name to number).
        kept: The file descriptors the child keeps besides 0, 1 and 2.
        body: What it runs; it is told the layers that hold.

    Returns:
        The process id of the child's warden, which ends when the child does.
    """
    warden = os.fork()
    if warden:
        _lead_group(warden)
        return warden
    status = 1
    try:
        _lead_group(0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _die_with_parent()
        _keep_only(kept)
        status = _guard(settings, body)
    finally:
        os._exit(status)


def _guard(settings: Settings, body: Body) -> int:
    without = _texts(settings["without"])
    layers: list[str] = []
    real_root = os.geteuid() == 0
    if NAMESPACES not in without:
        real_root = _separate(settings, layers)
    user = _FIRST_UID + os.getpid()  # as seen from outside: no two sandboxes share it
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status) & 0xFF
    try:
        _lock(settings, layers, user if real_root else None)
        body(layers)
    except BaseException:
        os._exit(1)
    os._exit(0)


def _separate(settings: Settings, layers: list[str]) -> bool:
    try:
        real_root = namespaces.separate()
    except OSError:
        return os.geteuid() == 0
    layers.append(NAMESPACES)
    if OWN_ROOT not in _texts(settings["without"]):
        try:
            paths = [path for path in readable_paths(settings) if os.path.exists(path)]  # noqa: PTH110
            namespaces.build_root(paths, _limits(settings)["tmp_bytes"])
            layers.append(OWN_ROOT)
        except OSError:
            pass  # Landlock has to do, or the body refuses
    return real_root


def _lock(settings: Settings, layers: list[str], user: int | None) -> None:
    without = _texts(settings["without"])
    own_root = OWN_ROOT in layers
    os.chdir("/tmp" if own_root else "/")  # noqa: S108
    if RLIMITS not in without:
        _limit(_limits(settings), alone=NAMESPACES in layers)
        layers.append(RLIMITS)
    if UNPRIVILEGED not in without:
        _drop_powers(user, own_root)
        layers.append(UNPRIVILEGED)
    _die_with_parent()  # a change of user takes this off
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if LANDLOCK not in without:
        _restrict(settings, layers, own_root)
    if SECCOMP not in without:
        _filter(layers, own_root)


def _restrict(settings: Settings, layers: list[str], own_root: bool) -> None:
    writable = ["/dev/null", *(["/tmp"] if own_root else [])]  # noqa: S108
    try:
        landlock.restrict(readable_paths(settings) + list(_DEVICES), writable)
        layers.append(LANDLOCK)
    except OSError:
        pass  # older than 5.13, or switched off


def _filter(layers: list[str], own_root: bool) -> None:
    try:
        seccomp.install(os.getpid(), own_root)
        layers.append(SECCOMP)
    except OSError:
        pass  # no filters here; the body decides


def readable_paths(settings: Settings) -> list[str]:
    """Return what a jailed process may read: the interpreter, system libraries, `visible`."""
    wanted = [*_SYSTEM_PATHS, *_texts(settings["visible"])]
    return [os.path.realpath(path) for path in wanted] + [
        path
        for path in wanted
        if not os.path.islink(path)  # noqa: PTH114
    ]


def _limit(limits: Mapping[str, int], alone: bool) -> None:
    wanted = {
        resource.RLIMIT_AS: limits["memory_bytes"],
        resource.RLIMIT_CPU: limits["cpu_s"],
        resource.RLIMIT_FSIZE: limits["tmp_bytes"],
        resource.RLIMIT_NOFILE: limits["open_files"],
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    if alone:  # elsewhere it would count all of the user's processes
        wanted[resource.RLIMIT_NPROC] = limits["threads"]
    for what, value in wanted.items():
        hard = resource.getrlimit(what)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(what, (value, value))


def _drop_powers(user: int | None, own_root: bool) -> None:
    # In the machine's own view an unprivileged user may not reach root's interpreter.
    if user is not None and (own_root or _open_to_all(os.__file__)):
        with suppress(OSError):  # root without CAP_SETUID stays what it is, without powers
            _become_anyone(user)
    kernel.drop_capabilities()


def _become_anyone(user: int) -> None:
    os.setgroups([])
    try:
        _become(user)
    except OSError:
        _become(_NOBODY)  # a container that maps few users


def _become(user: int) -> None:
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def _open_to_all(path: str) -> bool:
    while path != "/":
        if not os.stat(path).st_mode & 0o004:  # noqa: PTH116
            return False
        path = os.path.dirname(path)  # noqa: PTH120
    return True


def _lead_group(process: int) -> None:
    # Parent and child both do it: whichever comes first, the group is there.
    with suppress(OSError):
        os.setpgid(process, process)


def _die_with_parent() -> None:
    kernel.prctl(kernel.PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _keep_only(kept: list[int]) -> None:
    first = 3
    for number in sorted(kept):
        os.closerange(first, number)
        first = number + 1
    os.closerange(first, 4096)


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _limits(settings: Settings) -> Mapping[str, int]:
    limits = settings["limits"]
    return limits if isinstance(limits, dict) else {}
