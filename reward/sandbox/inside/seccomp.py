"""A system call filter: no network, no new processes, no reach into others.

Threads stay possible; a process may signal only itself. Promises: inherited, cannot be taken off;
a call of a foreign architecture ends the process. Knows nothing of files.
"""

from __future__ import annotations

import ctypes

from . import kernel, syscalls

# Opcodes of classic BPF.
_LOAD, _EQUAL, _ANY_OF, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_EPERM, _ENOSYS = 1, 38
_NUMBER, _ARCHITECTURE = 0, 4
_X86_ARCHITECTURE, _ARM_ARCHITECTURE = 0xC000003E, 0xC00000B7
_X32_CALLS = 0x40000000
_UNIX = 1
_NOT_STREAM = 0xE  # datagrams could be sent to anybody's socket file
# Commands that make the kernel send signals in one's name.
_SIGNAL_COMMANDS = (8, 10, 15)  # F_SETOWN, F_SETSIG, F_SETOWN_EX
# TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP
_SIGNAL_REQUESTS = (0x5412, 0x541C, 0x8901, 0x8902)

_Step = tuple[int, int, int, int]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def supported() -> bool:
    """Return whether the numbers of this machine's system calls are known."""
    return kernel.X86 or kernel.ARM


def install(own_pid: int, own_root: bool) -> None:
    """Put the filter on this process for good.

    Args:
        own_pid: The only process that may be signalled, as it sees itself.
        own_root: Whether the process has a root of its own; if not, file modes, owners and
            times cannot be changed either.

    Raises:
        OSError: If the kernel has no filters or the architecture is not supported.
    """
    if not supported():
        raise OSError(_ENOSYS, "no table of system calls for this architecture")
    steps = build(own_pid, own_root)
    packed = b"".join(
        code.to_bytes(2, "little") + bytes((yes, no)) + value.to_bytes(4, "little")
        for code, yes, no, value in steps
    )
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    program = _Program(len(steps), packed)
    kernel.prctl(kernel.PR_SET_SECCOMP, 2, ctypes.byref(program))


def build(own_pid: int, own_root: bool) -> list[_Step]:
    """Return the filter's steps: (opcode, jump if so, jump if not, value)."""
    steps: list[_Step] = [(_LOAD, 0, 0, _ARCHITECTURE)]
    steps += [(_EQUAL, 1, 0, _X86_ARCHITECTURE if kernel.X86 else _ARM_ARCHITECTURE)]
    steps += [(_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NUMBER)]
    if kernel.X86:
        steps += [(_AT_LEAST, 0, 1, _X32_CALLS), (_RETURN, 0, 0, _KILL)]
    refused = {**syscalls.ALWAYS, **({} if own_root else syscalls.WITHOUT_OWN_ROOT)}
    for numbers in refused.values():
        steps += _refuse(numbers, _EPERM)
    steps += _refuse(syscalls.CLONE3, _ENOSYS)  # libc then falls back to clone
    steps += _only(syscalls.CLONE, 0, _ANY_OF, (kernel.CLONE_THREAD,))
    steps += _only(syscalls.KILL, 0, _EQUAL, (own_pid,))
    steps += _only(syscalls.TGKILL, 0, _EQUAL, (own_pid,))
    steps += _only(syscalls.PRLIMIT, 0, _EQUAL, (0, own_pid))
    steps += _guarded(
        syscalls.SOCKETPAIR,
        [
            *_against(1, _ANY_OF, (_NOT_STREAM,), _ERRNO | _EPERM),
            *_against(0, _EQUAL, (_UNIX,), _ALLOW),
            (_RETURN, 0, 0, _ERRNO | _EPERM),
        ],
    )
    # Each process ends with its parent, and cannot change its mind.
    steps += _except(syscalls.PRCTL, 0, (kernel.PR_SET_PDEATHSIG,))
    steps += _except(syscalls.FCNTL, 1, _SIGNAL_COMMANDS)
    steps += _except(syscalls.IOCTL, 1, _SIGNAL_REQUESTS)
    return [*steps, (_RETURN, 0, 0, _ALLOW)]


def _number(numbers: syscalls.Numbers) -> int | None:
    return numbers[0] if kernel.X86 else numbers[1]


def _refuse(numbers: syscalls.Numbers, error: int) -> list[_Step]:
    number = _number(numbers)
    if number is None:
        return []
    return [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | error)]


def _only(
    numbers: syscalls.Numbers, argument: int, test: int, values: tuple[int, ...]
) -> list[_Step]:
    """Allow the call only if an argument passes the test against one of the values."""
    tests = _against(argument, test, values, _ALLOW)
    return _guarded(numbers, [*tests, (_RETURN, 0, 0, _ERRNO | _EPERM)])


def _except(numbers: syscalls.Numbers, argument: int, values: tuple[int, ...]) -> list[_Step]:
    """Allow the call unless an argument is one of the values."""
    tests = _against(argument, _EQUAL, values, _ERRNO | _EPERM)
    return _guarded(numbers, [*tests, (_RETURN, 0, 0, _ALLOW)])


def _against(argument: int, test: int, values: tuple[int, ...], verdict: int) -> list[_Step]:
    # The lower half of a little-endian argument is all the kernel itself looks at here.
    steps: list[_Step] = [(_LOAD, 0, 0, 16 + 8 * argument)]
    for value in values:
        steps += [(test, 0, 1, value), (_RETURN, 0, 0, verdict)]
    return steps


def _guarded(numbers: syscalls.Numbers, body: list[_Step]) -> list[_Step]:
    number = _number(numbers)
    return [] if number is None else [(_EQUAL, 0, len(body), number), *body]
