#!/usr/bin/env bash
# Everything that has to hold: style, types, layers, and the tests, real training included.
#
#   bash scripts/test.sh [pytest arguments]
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

prepare_environment cpu,dev
cd "$PROJECT"
"$VENV/bin/ruff" check .
"$VENV/bin/ruff" format --check .
"$VENV/bin/mypy"
"$VENV/bin/lint-imports"
"$VENV/bin/python" -m pytest "$@"
