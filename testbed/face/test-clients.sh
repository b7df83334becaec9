#!/usr/bin/env bash
# make test-clients: other people's programs, each configured as `sparkloom connect` says, ask whatever the rack serves
# (SmolLM2 where it serves nothing). The table of who was answered what goes into docs/reference/clients.md.
set -euo pipefail
export SPARKLOOM_CLIENTS=1 SPARKLOOM_VM= SPARKLOOM_PROFILES=$PWD/testbed/make/real/profiles
exec "$(dirname "$0")/test.sh" -m clients tests/rack -n 0
