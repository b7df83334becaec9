#!/usr/bin/env bash
# make test-more: what make test has no time for (`LATER` in tests/later.py), but for the fuzzing; K3s itself is built first.
set -euo pipefail
export SPARKLOOM_MORE=1 SPARKLOOM_VM=
exec "$(dirname "$0")/test.sh" -m more tests --ignore tests/security
