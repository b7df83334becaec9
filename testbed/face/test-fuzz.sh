#!/usr/bin/env bash
# make test-fuzz: new dice for what hypothesis tries, over and over for SPARKLOOM_DICE_MINUTES (10), then every hostile
# message over a socket of its own, 100,000 to each port; SPARKLOOM_FUZZ_SEED chooses others.
set -euo pipefail
source "$(dirname "$0")/../../scripts/setup/step.sh"
cd "$REPO"
scripts/setup/setup.sh

until=$((SECONDS + 60 * ${SPARKLOOM_DICE_MINUTES:-10}))
while ((SECONDS < until)); do
  step dice "new dice; pin what they find as an @example of its test" \
    env SPARKLOOM_DICE=1 "$PY" -m pytest -q -n 2 -m "hypothesis and not rack and not vm" tests
done
export SPARKLOOM_MORE=1 SPARKLOOM_VM=
exec "$(dirname "$0")/test.sh" -m more tests/security
