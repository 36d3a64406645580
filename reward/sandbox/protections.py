"""What protects this machine from the code in the sandbox.

Promises: what is reported as active was found on in a process that was locked in just now.
Knows nothing of tests.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reward.sandbox.inside.jail import LANDLOCK, NAMESPACES, OWN_ROOT, RLIMITS, SECCOMP

# What must hold before code is run: each need, and the layers of which one will do.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "no network": (NAMESPACES, SECCOMP),
    "no writes outside its folder": (OWN_ROOT, LANDLOCK),
    "home and keys out of sight": (OWN_ROOT, LANDLOCK),
    "no reach into other processes": (NAMESPACES, SECCOMP),
    "limits on time and memory": (RLIMITS,),
}

_REMEDY = (
    "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, or "
    "kernel.apparmor_restrict_unprivileged_userns=0; in Docker --security-opt seccomp=unconfined), "
    "or use a kernel of 5.13 or newer with Landlock and seccomp on x86-64 or ARM64"
)


@dataclass(frozen=True)
class Protections:
    """The layers that hold, each true or false.

    Attributes:
        namespaces: Its own processes, network, IPC, host name.
        own_root: Its own file system: libraries read-only, /tmp in memory, nothing else.
        landlock: The kernel refuses every other file.
        seccomp: The kernel refuses sockets, new processes, signals and more.
        unprivileged: No capabilities; if started by root, a user id of its own where possible.
        rlimits: CPU time, address space, file size, open files.
    """

    namespaces: bool = False
    own_root: bool = False
    landlock: bool = False
    seccomp: bool = False
    unprivileged: bool = False
    rlimits: bool = False

    @classmethod
    def of(cls, layers: Iterable[str]) -> Protections:
        """Return the protections of layers by name."""
        return cls(**dict.fromkeys(layers, True))

    @property
    def missing(self) -> tuple[str, ...]:
        """The needs that no active layer meets."""
        return tuple(
            need
            for need, layers in NEEDS.items()
            if not any(getattr(self, layer) for layer in layers)
        )

    def __str__(self) -> str:
        lines = [f"{name:13} {'on' if on else 'OFF'}" for name, on in vars(self).items()]
        verdict = "enough" if not self.missing else f"NOT ENOUGH: {', '.join(self.missing)}"
        return "\n".join([*lines, f"-> {verdict}"])


def unavailable(missing: Iterable[str]) -> str:
    """Return what to tell where needs are not met."""
    where = "" if sys.platform == "linux" else f" (this is {sys.platform}; Linux is needed)"
    return (
        f"the code sandbox cannot promise here{where}: {', '.join(missing)}. To have it, {_REMEDY}."
    )
