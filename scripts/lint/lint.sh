#!/usr/bin/env bash
# make lint: every checker runs, the failing ones are named at the end.
set -euo pipefail
source "$(dirname "$0")/../setup/step.sh"
cd "$REPO"
scripts/setup/setup.sh
export PATH=$REPO/.venv/bin:$PATH

failed=$(mktemp)
beside=
trap '[[ -z $beside ]] || kill -- "-$beside" 2>/dev/null || true; rm -f "$failed"' EXIT
check() { (step "$@") || echo "$1" >>"$failed"; }

# ansible-lint takes more than all others together, on one core: its larger half runs beside them.
set -m # a process group of its own, which a Ctrl-C ends too
check ansible-lint "playbooks and roles, profile production" ansible-lint --offline --exclude molecule </dev/null &
beside=$!
set +m
check ruff "style and mistakes in Python" ruff check .
check format "Python layout" ruff format --check .
check mypy "types of scripts/sparkloom, strict" mypy
check rooms "the floor plan: who may import whom" lint-imports --no-cache
check yamllint "YAML layout" yamllint --strict .
check stale "generated files against their sources" "$PY" scripts/lint/stale.py
check audit "known faults of what requirements.lock pins" "$PY" scripts/lint/audit.py
check docs "the pages as a site, every link followed" zensical build --strict
check lines "lines of code by room" "$PY" scripts/lint/lines.py
# It follows a scenario into the roles that it plays: those are judged above.
check ansible-lint-molecule "the scenarios, likewise" ansible-lint --offline molecule --exclude roles playbooks
wait

[[ ! -s $failed ]] || die lint "failing: $(paste -sd' ' "$failed") (each said why above)"
say lint "clean in $(seconds_since "$SPARKLOOM_STARTED") s"
