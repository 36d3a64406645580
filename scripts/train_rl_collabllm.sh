#!/usr/bin/env bash
# Trains CollabLLM: makes the environment, gets the model, makes the data, trains, and compares
# held-out problems before and after. A second run reuses all of it and resumes.
#
#   bash scripts/train_rl_collabllm.sh [key=value ...]       (see: ... --help)
#
# Everything it leaves is in outputs/, in the folder where it is called.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

prepare_environment "$(hardware_extra)"
exec "$VENV/bin/collabllm" train "$@"
