#!/usr/bin/env bash
# Serves a model for simulated users and judges on this machine: an OpenAI-compatible endpoint.
# Without options the embedded SmolLM2 with llama.cpp, on a machine without a GPU.
#
#   bash scripts/serve_user_simulator.sh [--model FILE.gguf] [--port 8700] ...   (see: ... --help)
#
# It says when it answers and which settings to use; Ctrl-C stops it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

prepare_environment "$(hardware_extra)"
exec "$VENV/bin/collabllm" serve "$@"
