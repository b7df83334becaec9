#!/usr/bin/env bash
# make test-more: the scenarios that make test has no time for, those of tests/rack marked with LATER; K3s itself is built first.
set -euo pipefail
export SPARKLOOM_MORE=1 SPARKLOOM_VM=
exec "$(dirname "$0")/test.sh" -m more tests/rack
