#!/usr/bin/env bash
# Rewrite requirements.lock from pyproject.toml: hashes for Python 3.11-3.13 on x86_64 and aarch64 Linux, no index address in it.
set -euo pipefail
source "$(dirname "$0")/step.sh"
cd "$REPO"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
install_uv() { "$PY" -m venv "$scratch/venv" && "$scratch/venv/bin/pip" install --quiet uv; }

resolve() {
  # uv does not read pip's configuration: hand over the index that this machine's pip uses, if one is set.
  local index
  index=$("$PY" -m pip config get global.index-url 2>/dev/null || echo "${PIP_INDEX_URL:-}")
  [[ -z $index ]] || export UV_DEFAULT_INDEX=$index
  # What is locked stays as it is; `scripts/setup/lock.sh --upgrade` takes the newest of everything that is not pinned.
  cp requirements.lock "$scratch/lock"
  "$scratch/venv/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --extra dev \
    --no-emit-index-url --no-header --no-annotate "$@" pyproject.toml --output-file "$scratch/lock"
  { echo "# Written by scripts/setup/lock.sh from pyproject.toml; do not edit."; cat "$scratch/lock"; } >requirements.lock
}

step uv "installing uv into a temporary venv" install_uv
step lock "resolving pyproject.toml into requirements.lock" resolve "$@"
