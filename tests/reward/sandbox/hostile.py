"""Programs that try to pass without solving, to do harm, or to stay.

Each defines `add` so that it gives the right sum only if its trick worked; so a pass of any case
is a hole. `TRACE` in a program becomes a file name that must turn up nowhere; `PORT` a port of
this machine that somebody listens on.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable
from pathlib import Path

from reward.sandbox import Limits, Sandbox, TestReport

TESTS = """
import unittest

class Sums(unittest.TestCase):
    def test_small(self):
        self.assertEqual(add(2, 3), 5)

    def test_large(self):
        self.assertEqual(add(20_000, 30_001), 50_001)
"""

LIMITS = Limits(cpu_s=1, wall_s=3.0, memory_mb=256, tmp_mb=4)
SLACK_S = 6.0  # to start and to end, on a loaded machine

FAKE = r"""
import json
def frame(**message):
    body = json.dumps(message).encode()
    return len(body).to_bytes(4, "big") + body
"""

PROGRAMS: dict[str, str] = {
    # to fool the tests
    "patch_unittest": """
import unittest
unittest.TestCase.assertEqual = lambda *a, **k: None
unittest.TestResult.wasSuccessful = lambda self: True
unittest.TestCase.run = lambda self, result=None: result.addSuccess(self)
def add(a, b): return None
""",
    "patch_pytest": """
import sys, types
fake = types.ModuleType("pytest"); fake.raises = None; fake.main = lambda *a: 0
sys.modules["pytest"] = sys.modules["_pytest"] = fake
def add(a, b): return None
""",
    "patch_builtins": """
import builtins
builtins.AssertionError = type("Calm", (Exception,), {})
builtins.isinstance = lambda *a: True
builtins.len = lambda x: 5
def add(a, b): return None
""",
    "patch_json": """
import json
json.dumps = lambda *a, **k: '{"event": "case", "passed": true}'
json.loads = lambda *a, **k: {"name": "add", "args": [], "kwargs": {}}
def add(a, b): return None
""",
    "always_equal": """
class Always:
    def __eq__(self, other): return True
    def __hash__(self): return 5
def add(a, b): return Always()
""",
    "lying_int": """
class Five(int):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    __hash__ = int.__hash__
def add(a, b): return Five(0)
""",
    "fake_class": """
class Fake:
    __class__ = int
    def __eq__(self, other): return True
def add(a, b): return Fake()
""",
    "skip": "import unittest\ndef add(a, b): raise unittest.SkipTest('all good')\n",
    "interrupt": "def add(a, b): raise KeyboardInterrupt\n",
    "generator_exit": "def add(a, b): raise GeneratorExit\n",
    "exit_at_import": "import sys\nsys.exit(0)\n",
    "exit_in_call": "def add(a, b): raise SystemExit(0)\n",
    "hard_exit_at_import": "import os\nos._exit(0)\n",
    "hard_exit_in_call": "import os\ndef add(a, b): os._exit(0)\n",
    "abort": "import os\ndef add(a, b): os.abort()\n",
    "exit_later": "import atexit, os\natexit.register(os._exit, 0)\ndef add(a, b): return None\n",
    "empty": "",
    "not_python": "def add(a, b: return\n",
    "settrace": """
import sys
seen = []
def trace(frame, event, arg):
    seen.append(frame.f_locals)
    return trace
sys.settrace(trace)
def add(a, b):
    return next(v for d in seen for v in d.values() if type(v) is int and v > a and v == a + b)
""",
    "look_up_the_stack": """
import sys
def add(a, b):
    frame = sys._getframe()
    while frame:
        for value in list(frame.f_locals.values()) + list(frame.f_globals.values()):
            if "assert" + "Equal" in repr(value): return a + b
        frame = frame.f_back
""",
    "search_the_heap": """
import gc
needle = "assert" + "Equal(add"
def add(a, b):
    for thing in gc.get_objects():
        if isinstance(thing, dict):
            for value in thing.values():
                if type(value) is str and value != needle and needle in value: return a + b
""",
    "search_the_memory": """
needle = b"assert" + b"Equal(add"
def add(a, b):
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb") as memory:
        for line in maps:
            low, high = (int(x, 16) for x in line.split()[0].split("-"))
            if "r" in line.split()[1]:
                memory.seek(low)
                if needle in memory.read(high - low): return a + b
""",
    "write_to_every_descriptor": FAKE
    + r"""
import os
line = b'{"event": "case", "name": "tests.Sums.test_small", "passed": true, "reason": ""}\n'
for number in range(3, 256):
    try: os.write(number, line)
    except OSError: pass
def add(a, b): return None
""",
    "read_every_descriptor": """
import os, time
found = False
for _ in range(200):
    for number in range(256):
        try:
            os.set_blocking(number, False)
            found |= b"assert" + b"Equal" in os.read(number, 1 << 20)
        except OSError: pass
    time.sleep(0.001)
def add(a, b): return a + b if found else None
""",
    "answer_before_asked": FAKE
    + r"""
import os
for number in range(3, 256):
    try: os.write(number, frame(loaded=None) + frame(returned={"tuple": [1]}) * 9)
    except OSError: pass
def add(a, b): return None
""",
    "broken_frames": r"""
import os
def add(a, b):
    for number in range(3, 256):
        try: os.write(number, b"\xff" * 64)
        except OSError: pass
""",
    # to use everything up
    "loop_in_call": "def add(a, b):\n    while True: pass\n",
    "loop_at_import": "while True: pass\n",
    "loop_deaf_to_signals": """
import signal
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
def add(a, b):
    while True: pass
""",
    "sleep": "import time\ndef add(a, b): time.sleep(1000); return a + b\n",
    "memory_bomb": "def add(a, b): return len(bytearray(10**10)) and a + b\n",
    "slow_memory_bomb": """
def add(a, b):
    kept = []
    while True: kept.append(bytes(10**6))
""",
    "big_number": "def add(a, b): return 10 ** 10 ** 9\n",
    "fork_bomb": """
import os
def add(a, b):
    for _ in range(1000):
        os.fork()
    return a + b
""",
    "thread_bomb": """
import threading, time
def add(a, b):
    for _ in range(100_000):
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    return a + b
""",
    "ten_gigabytes_of_output": """
import os, sys
def add(a, b):
    for _ in range(10_000):
        os.write(1, bytes(10**6)); os.write(2, bytes(10**6)); sys.stdout.write("x" * 1000)
    return None
""",
    "ten_gigabytes_of_file": """
def add(a, b):
    with open("/tmp/TRACE", "wb") as file:
        for _ in range(10_000): file.write(bytes(10**6))
    return a + b
""",
    "many_files": """
def add(a, b):
    for number in range(1_000_000): open(f"/tmp/TRACE{number}", "w").close()
    return a + b
""",
    "huge_answer": "def add(a, b): return 'x' * 10**8\n",
    "deep_answer": """
def add(a, b):
    answer = []
    for _ in range(10**5): answer = [answer]
    return answer
""",
    "answer_in_itself": "def add(a, b):\n    answer = []\n    answer.append(answer)\n    return answer\n",
    "endless_answer": "import itertools\ndef add(a, b): return (x for x in itertools.count())\n",
    "stack_overflow": """
import sys
sys.setrecursionlimit(10**9)
def add(a, b): return add(a, b)
""",
    "raise_limits": """
import resource
def add(a, b):
    resource.setrlimit(resource.RLIMIT_CPU, (10**6, 10**6))
    return a + b
""",
    # to leave, to look out, to stay
    "write_home": """
import pathlib
HOMES = [pathlib.Path("/root"), pathlib.Path("/home"), pathlib.Path("HOME")]
def add(a, b):
    done = 0
    for home in HOMES:
        try: (home / "TRACE").write_text("x"); done += 1
        except OSError: pass
    return a + b if done else None
""",
    "write_elsewhere": """
def add(a, b):
    done = 0
    for folder in ("/", "/var/tmp", "/dev/shm", "/usr/lib", "/etc", "PROJECT", "/run", "/opt"):
        try: open(folder + "/TRACE", "w").close(); done += 1
        except OSError: pass
    return a + b if done else None
""",
    "write_temporary_folder_and_stay": """
open("/tmp/TRACE", "w").close()
def add(a, b): return None
""",
    "symlink_out": """
import os
def add(a, b):
    done = 0
    for target in ("/etc/passwd", "HOME/TRACE", "PROJECT/pyproject.toml", "/proc/1/environ"):
        link = "/tmp/TRACE" + str(done)
        try: os.symlink(target, link); open(link).read(1); done += 1
        except OSError: pass
        try: open(link, "a").write(""); done += 1
        except OSError: pass
    return a + b if done else None
""",
    "symlink_root": """
import os
def add(a, b):
    os.symlink("/../../../../..", "/tmp/TRACE")
    return a + b if "passwd" in os.listdir("/tmp/TRACE/etc") else None
""",
    "change_modes": """
import os
def add(a, b):
    done = 0
    for path in ("PROJECT", "PROJECT/pyproject.toml", "HOME", os.__file__):
        try: os.chmod(path, 0o777); done += 1
        except OSError: pass
        try: os.utime(path, (0, 0)); done += 1
        except OSError: pass
    return a + b if done else None
""",
    "change_the_library": """
import os
def add(a, b):
    with open(os.__file__, "a") as file: file.write("")
    return a + b
""",
    "read_keys": """
import os
def add(a, b):
    found = "SANDBOX_TEST_KEY" in os.environ
    for who in ("self", "1", str(os.getppid()), "OWNER"):
        try: found |= b"SANDBOX_TEST_KEY" in open(f"/proc/{who}/environ", "rb").read()
        except OSError: pass
    return a + b if found else None
""",
    "read_files": """
import os
def add(a, b):
    found = 0
    for path in ("/etc/passwd", "PROJECT/pyproject.toml", "/proc/self/status", "/proc/1/cmdline"):
        try: found += len(open(path).read(1))
        except OSError: pass
    return a + b if found else None
""",
    "list_folders": """
import os
def add(a, b):
    found = 0
    for path in ("PROJECT", "PROJECT/reward", "/proc", "/home", "/etc/ssl", "/var"):
        try: found += len(os.listdir(path))
        except OSError: pass
    return a + b if found else None
""",
    "socket_out": """
import socket
def add(a, b):
    socket.create_connection(("127.0.0.1", PORT), timeout=1)
    return a + b
""",
    "socket_udp": """
import socket
def add(a, b):
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", PORT))
    return a + b
""",
    "socket_unix": """
import socket
def add(a, b):
    done = 0
    for family in (socket.AF_UNIX, socket.AF_NETLINK, socket.AF_PACKET, socket.AF_INET6):
        try: socket.socket(family, socket.SOCK_DGRAM); done += 1
        except OSError: pass
    return a + b if done else None
""",
    "kill_parent": """
import os, signal
def add(a, b):
    os.kill(os.getppid(), signal.SIGKILL)
    return a + b
""",
    "kill_all": """
import os, signal
def add(a, b):
    done = 0
    for target in (-1, 0, 2, OWNER):
        for call in (os.kill, os.killpg):
            try: call(target, signal.SIGKILL); done += 1
            except OSError: pass
    return a + b if done else None
""",
    "signal_by_descriptor": """
import fcntl, os
def add(a, b):
    end, _ = os.pipe()
    fcntl.fcntl(end, 10, 9)
    fcntl.fcntl(end, 8, OWNER)
    return a + b
""",
    "kill_self": "import os\ndef add(a, b): os.kill(os.getpid(), 9)\n",
    "ptrace": """
import ctypes, os
libc = ctypes.CDLL(None)
def add(a, b): return a + b if libc.ptrace(16, OWNER, 0, 0) == 0 else None
""",
    "read_other_memory": """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def add(a, b):
    libc.process_vm_readv(OWNER, None, 0, None, 0, 0)
    return a + b if ctypes.get_errno() == 0 else None
""",
    "mount": """
import ctypes
libc = ctypes.CDLL(None)
def add(a, b):
    done = libc.mount(b"proc", b"/tmp", b"proc", 0, b"") == 0 or libc.umount2(b"/tmp", 2) == 0
    return a + b if done else None
""",
    "new_namespace": """
import ctypes
libc = ctypes.CDLL(None)
def add(a, b): return a + b if libc.unshare(0x10000000) == 0 else None
""",
    "become_root": """
import os
def add(a, b):
    os.setuid(0)
    os.chroot("/")
    return a + b
""",
    "has_powers": """
import ctypes
def add(a, b):
    header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None).capget(header, sets) == 0
    return a + b if any(sets) else None
""",
    "kernel_doors": """
import ctypes
libc = ctypes.CDLL(None)
def add(a, b):
    numbers = (425, 321, 298, 323, 248, 319, 29, 135)
    done = [n for n in numbers if libc.syscall(n, 0, 0, 0, 0, 0) >= 0]
    return a + b if done else None
""",
    "shell": """
import os, subprocess
def add(a, b):
    done = os.system("touch /tmp/TRACE") == 0
    try: done |= subprocess.run(["/bin/true"]).returncode == 0
    except OSError: pass
    return a + b if done else None
""",
    "become_another_program": """
import os, sys
def add(a, b): os.execv("/proc/self/exe", ["python", "-c", "while True: pass"])
""",
    "stay_as_a_daemon": """
import os, time
def add(a, b):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0: time.sleep(1000)
        os._exit(0)
    return a + b
""",
    "leave_the_session": "import os\ndef add(a, b):\n    os.setsid()\n    return a + b\n",
    "outlive_the_parent": """
import ctypes, time
libc = ctypes.CDLL(None)
libc.prctl(1, 0, 0, 0, 0)
def add(a, b): time.sleep(1000)
""",
    "clone_by_number": """
import ctypes
libc = ctypes.CDLL(None)
def add(a, b):
    for number, flags in ((56, 17), (57, 0), (58, 0), (435, 0), (56, 0x10000011)):
        if libc.syscall(number, flags, 0, 0, 0, 0) > 0: return a + b
""",
}

# What uses its time up; one such program shows as much as ten.
SLOW = (
    *("settrace", "big_number", "loop_at_import", "loop_deaf_to_signals", "sleep", "huge_answer"),
    *("endless_answer", "stack_overflow", "ten_gigabytes_of_output", "outlive_the_parent"),
)
QUICK = [name for name in PROGRAMS if name not in SLOW]
# What a single layer might be all that stands against.
TO_LEAVE = [name for name in list(PROGRAMS)[list(PROGRAMS).index("write_home") :] if name in QUICK]


def fill_in(program: str, trace: str, port: int, owner: int) -> str:
    """Return a program with its targets named."""
    project = str(Path(__file__).resolve().parents[3])
    replaced = {"TRACE": trace, "PORT": str(port), "HOME": str(Path.home()), "PROJECT": project}
    for name, value in {**replaced, "OWNER": str(owner)}.items():
        program = program.replace(name, value)
    return program


async def run_all(
    sandbox: Sandbox, names: Iterable[str], trace: str, port: int, owner: int
) -> dict[str, TestReport]:
    """Run programs and return the reports by name."""
    names = list(names)
    programs = [fill_in(PROGRAMS[name], trace, port, owner) for name in names]
    reports = await asyncio.gather(*(sandbox.run_tests(p, TESTS, "add") for p in programs))
    return dict(zip(names, reports, strict=True))


def main() -> None:
    """Run the quick programs as whoever this is; print what each came to."""
    trace, port, owner = sys.argv[1:]
    sandbox = Sandbox(LIMITS)
    reports = asyncio.run(run_all(sandbox, QUICK, trace, int(port), int(owner)))
    good = asyncio.run(sandbox.run_tests("def add(a, b): return a + b", TESTS, "add"))
    print(
        json.dumps(
            {
                "good": good.passed,
                "passed": {name: report.passed for name, report in reports.items()},
                "elapsed_s": {name: report.elapsed_s for name, report in reports.items()},
                "protections": good.protections,
            }
        )
    )


if __name__ == "__main__":
    main()
