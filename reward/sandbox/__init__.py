"""Runs code that nobody vouches for; docs/sandbox.md says how and against what.

from reward.sandbox import Sandbox
"""

from reward.sandbox.limits import Limits
from reward.sandbox.protections import Protections
from reward.sandbox.report import (
    CaseResult,
    Ending,
    QueryResult,
    SandboxFailed,
    SandboxUnavailable,
    TestReport,
    TestsBroken,
)
from reward.sandbox.sandbox import Sandbox, active_protections

__all__ = [
    "CaseResult",
    "Ending",
    "Limits",
    "Protections",
    "QueryResult",
    "Sandbox",
    "SandboxFailed",
    "SandboxUnavailable",
    "TestReport",
    "TestsBroken",
    "active_protections",
]
