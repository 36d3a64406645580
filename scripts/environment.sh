# Makes the project's virtual environment, or finds it; sourced by the other scripts.
#
#   prepare_environment EXTRAS      EXTRAS as in pyproject.toml, e.g. "cpu,dev"
#
# Sets VENV. PYTHON chooses the interpreter (3.10 to 3.12), COLLABLLM_VENV the folder.
# A second call does nothing unless pyproject.toml or the constraints have changed.

PROJECT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VENV=${COLLABLLM_VENV:-$PROJECT/.venv}

tell() { printf 'collabllm %s\n' "$*"; }

fail() {
  printf 'collabllm: %s\n' "$*" >&2
  exit 2
}

# The extra that fits the machine: sglang where there is an NVIDIA GPU, else cpu.
hardware_extra() {
  if command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi >/dev/null 2>&1; then
    echo sglang
  else
    echo cpu
  fi
}

prepare_environment() {
  local extras=$1 constraints stamp wanted
  constraints=$PROJECT/constraints/cpu.txt
  case ",$extras," in *,sglang,*) constraints=$PROJECT/constraints/sglang.txt ;; esac
  wanted=$(cat "$PROJECT/pyproject.toml" "$constraints" | cksum)
  stamp=$VENV/.collabllm-${extras//,/-}
  if [ -x "$VENV/bin/collabllm" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    return
  fi
  local python=${PYTHON:-python3}
  "$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null ||
    fail "needs Python 3.10 to 3.12; set PYTHON=/path/to/python3.11"
  if [ ! -x "$VENV/bin/python" ]; then
    tell "making a virtual environment in $VENV"
    "$python" -m venv "$VENV" || fail "$python cannot make a virtual environment (on Debian: apt install python3-venv)"
  fi
  tell "installing what '$extras' needs; this takes a minute or two"
  "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check \
    --constraint "$constraints" --editable "$PROJECT[$extras]" ||
    fail "the installation failed; see pip's message above"
  echo "$wanted" >"$stamp"
}
