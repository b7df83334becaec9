#!/usr/bin/env bash
# make test-kills: twenty runs of the site's playbook killed by chance, each run again. SPARKLOOM_KILLS=N chooses how many.
set -euo pipefail
export SPARKLOOM_KILLS=${SPARKLOOM_KILLS-20} SPARKLOOM_VM= SPARKLOOM_MORE=1
exec "$(dirname "$0")/test.sh" tests/rack/test_killed.py
