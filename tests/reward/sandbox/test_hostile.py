"""Hostile programs: none passes, none outlives its limits, none leaves a trace."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import socket
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from reward.sandbox import Sandbox, TestReport
from tests.conftest import PROJECT
from tests.reward.sandbox.hostile import LIMITS, PROGRAMS, SLACK_S, TESTS, TO_LEAVE, run_all

TRACE = f"sandbox_trace_{secrets.token_hex(8)}"
SYSTEM_PYTHON = "/usr/bin/python3"


def traces() -> list[Path]:
    folders = ["/tmp", "/var/tmp", "/dev/shm", "/", "/etc", "/run", "/opt", "/root", "/home"]
    places = {Path(p) for p in [*folders, tempfile.gettempdir(), Path.home(), PROJECT, Path.cwd()]}
    return [f for p in places if os.access(p, os.R_OK) and p.is_dir() for f in p.glob(f"*{TRACE}*")]


def left_over() -> list[int]:
    mine = f"sandbox of {os.getpid()}"
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        if mine in (process.info["cmdline"] or []) and process.info["status"] != "zombie":
            found.append(process.pid)
    return found


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture(scope="module")
def reports(port: int) -> dict[str, TestReport]:
    os.environ["SANDBOX_TEST_KEY"] = "sk-secret"
    try:
        return asyncio.run(run_all(Sandbox(LIMITS), PROGRAMS, TRACE, port, os.getpid()))
    finally:
        del os.environ["SANDBOX_TEST_KEY"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_hostile_program_passes_nothing_in_its_time(
    reports: dict[str, TestReport], name: str
) -> None:
    assert reports[name].total == 2 and reports[name].passed == 0, reports[name]
    assert not reports[name].cases[0].passed and reports[name].reason
    assert reports[name].elapsed_s < LIMITS.wall_s + SLACK_S


def test_no_process_of_theirs_is_left(reports: dict[str, TestReport]) -> None:
    assert len(reports) >= 30
    assert left_over() == []


def test_no_file_of_theirs_is_left(reports: dict[str, TestReport]) -> None:
    assert traces() == []


def test_an_honest_program_passes_the_same_tests(reports: dict[str, TestReport]) -> None:
    report = asyncio.run(Sandbox(LIMITS).run_tests("def add(a, b): return a + b", TESTS, "add"))
    assert (report.passed, report.total) == (2, 2), report


@pytest.mark.parametrize("without", ["namespaces", "own_root", "landlock"])
def test_files_network_and_processes_are_out_of_reach_without_one_layer(
    without: str, port: int
) -> None:
    sandbox = Sandbox(LIMITS, without=frozenset({without}))

    reports = asyncio.run(run_all(sandbox, TO_LEAVE, TRACE, port, os.getpid()))
    assert [name for name, report in reports.items() if report.passed] == []
    assert all(without not in report.protections for report in reports.values())
    assert left_over() == [] and traces() == []


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv") or not Path(SYSTEM_PYTHON).exists(),
    reason="needs root, setpriv and a Python that ordinary users can reach",
)
@pytest.mark.parametrize(
    "who",
    ["--reuid 12345 --regid 12345 --clear-groups", "--bounding-set -all --inh-caps -all"],
    ids=["ordinary user", "root without powers"],
)
def test_whoever_runs_it_is_as_safe(who: str, port: int) -> None:
    paths = os.pathsep.join([str(PROJECT), sysconfig.get_paths()["purelib"]])
    done = subprocess.run(
        [
            *("setpriv", *who.split()),
            *(SYSTEM_PYTHON, "-m", "tests.reward.sandbox.hostile"),
            *(TRACE, str(port), str(os.getpid())),
        ],
        env={"PYTHONPATH": paths, "HOME": "/nonexistent", "SANDBOX_TEST_KEY": "sk-secret"},
        cwd="/",
        capture_output=True,
        check=False,
        timeout=180,
    )
    if any(error in done.stderr for error in (b"ImportError", b"ModuleNotFoundError")):
        pytest.skip(f"{SYSTEM_PYTHON} cannot run the project: {done.stderr[-200:]!r}")
    assert done.returncode == 0, done.stderr[-2000:]
    outcome = json.loads(done.stdout)
    assert outcome["good"] == 2
    assert {name: passed for name, passed in outcome["passed"].items() if passed} == {}
    assert max(outcome["elapsed_s"].values()) < LIMITS.wall_s + SLACK_S
    assert traces() == []
