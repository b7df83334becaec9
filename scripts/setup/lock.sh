#!/usr/bin/env bash
# Rewrite requirements.lock from pyproject.toml: hashes for Python 3.11-3.13 on x86_64 and aarch64 Linux, no index address in it.
set -euo pipefail
source "$(dirname "$0")/step.sh"
cd "$REPO"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

resolve() {
  local index
  index=$(pip_index)
  [[ -z $index ]] || export UV_DEFAULT_INDEX=$index
  # What is locked stays as it is; `scripts/setup/lock.sh --upgrade` takes the newest of everything that is not pinned.
  cp requirements.lock "$scratch/lock"
  .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --extra dev \
    --no-emit-index-url --no-header --no-annotate "$@" pyproject.toml --output-file "$scratch/lock"
  { echo "# Written by scripts/setup/lock.sh from pyproject.toml; do not edit."; cat "$scratch/lock"; } >requirements.lock
}

step lock "resolving pyproject.toml into requirements.lock" resolve "$@"
