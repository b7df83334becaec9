#!/usr/bin/env bash
# make test-more: the scenarios that make test has no time for; tests/rack/test_molecule.py names them.
set -euo pipefail
export SPARKLOOM_MORE=1 SPARKLOOM_VM=
exec "$(dirname "$0")/test.sh" -m more tests/rack/test_molecule.py
