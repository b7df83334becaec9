#!/usr/bin/env bash
# make test-profiles: every shipped profile served by its stand-in, one after the other (about a minute each).
set -euo pipefail
export SPARKLOOM_SERVED=1 SPARKLOOM_VM=
exec "$(dirname "$0")/test.sh" -m served tests/rack
