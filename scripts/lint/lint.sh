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

# ansible-lint takes more than all others together, and says the same of the same files: what it found clean is kept.
of=(roles playbooks molecule plugins inventories site.yml .ansible-lint ansible.cfg requirements.{lock,yml} scripts/lint/lint.sh)
sums() { git ls-files -coz --exclude-standard -- "${of[@]}" | xargs -0 sha256sum; }
key=$(sums | sha256sum | cut -c1-12) || key=$EPOCHREALTIME # no checkout, or half of one: nothing is kept
clean=${XDG_CACHE_HOME:-$HOME/.cache}/sparkloom/ansible-clean-$key
# Its larger half runs beside the others, on the other core.
if [[ -e $clean ]]; then
  say ansible-lint "the same files were clean at $(date -r "$clean" '+%F %H:%M'); rm $clean asks again"
else
  set -m # a process group of its own, which a Ctrl-C ends too
  check ansible-lint "playbooks and roles, profile production" ansible-lint --offline --exclude molecule </dev/null &
  beside=$!
  set +m
fi
check ruff "style and mistakes in Python" ruff check .
check format "Python layout" ruff format --check .
check mypy "types of scripts/sparkloom, strict" mypy
check rooms "the floor plan: who may import whom" lint-imports --no-cache
check yamllint "YAML layout" yamllint --strict .
check stale "generated files against their sources" "$PY" scripts/lint/stale.py
check audit "known faults of what requirements.lock pins" "$PY" scripts/lint/audit.py
check docs "the pages as a site, every link followed" zensical build --strict
check lines "lines of code by room" "$PY" scripts/lint/lines.py
if [[ -n $beside ]]; then
  # It follows a scenario into the roles that it plays: those are judged above.
  check ansible-lint-molecule "the scenarios, likewise" ansible-lint --offline molecule --exclude roles playbooks
  wait
  grep -q ansible "$failed" || { mkdir -p "${clean%/*}" && rm -f "${clean%-*}"-* && touch "$clean"; }
fi

[[ ! -s $failed ]] || die lint "failing: $(paste -sd' ' "$failed") (each said why above)"
say lint "clean in $(seconds_since "$SPARKLOOM_STARTED") s"
