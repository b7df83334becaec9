#!/usr/bin/env bash
# make test-fuzz: every hostile message over a socket of its own, 100,000 to each port; SPARKLOOM_FUZZ_SEED chooses others.
set -euo pipefail
export SPARKLOOM_MORE=1 SPARKLOOM_VM=
exec "$(dirname "$0")/test.sh" -m more tests/security
