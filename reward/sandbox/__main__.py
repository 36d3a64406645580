"""`python -m reward.sandbox`: which protections are active here, and do they hold?

Promises: exit code 0 only if they are enough and every check held. Knows nothing else.
"""

from __future__ import annotations

import sys

from reward.sandbox.protections import unavailable
from reward.sandbox.report import SandboxFailed
from reward.sandbox.sandbox import active_protections
from reward.sandbox.self_check import run_self_check


def main() -> int:
    """Print protections and checks; return the exit code."""
    try:
        protections = active_protections()
    except (SandboxFailed, OSError) as error:
        sys.stdout.write(f"{unavailable([str(error)])}\n")
        return 1
    sys.stdout.write(f"{protections}\n\n")
    if protections.missing:
        sys.stdout.write(f"{unavailable(protections.missing)}\n")
        return 1
    checks, milliseconds = run_self_check()
    for check in checks:
        verdict = "as it should" if check.held else "NOT AS IT SHOULD"
        sys.stdout.write(f"{check.name:24} {verdict}  ({check.elapsed_ms:.0f} ms)\n")
    sys.stdout.write(f"\n{milliseconds:.0f} ms a run\n")
    return 0 if all(check.held for check in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
