#!/usr/bin/env bash
# make test-fuzz: every parser of others' bytes under atheris for SPARKLOOM_FUZZ_MINUTES in all (10; 0: not at all), the
# corpus kept in ~/.cache/sparkloom/fuzz; new dice for what hypothesis tries, over and over for SPARKLOOM_DICE_MINUTES (10);
# then every hostile message over a socket of its own, 100,000 to each port; SPARKLOOM_FUZZ_SEED chooses others.
set -euo pipefail
source "$(dirname "$0")/../../scripts/setup/step.sh"
cd "$REPO"
scripts/setup/setup.sh

minutes=${SPARKLOOM_FUZZ_MINUTES:-10}
[[ $minutes == 0 ]] || step guided "each parser by coverage, $minutes minutes in all" "$PY" -m tests.security.guided.run --minutes "$minutes"
until=$((SECONDS + 60 * ${SPARKLOOM_DICE_MINUTES:-10}))
while ((SECONDS < until)); do
  step dice "new dice; pin what they find as an @example of its test" \
    env SPARKLOOM_DICE=1 "$PY" -m pytest -q -n 2 -m "hypothesis and not rack and not vm" tests
done
export SPARKLOOM_MORE=1 SPARKLOOM_VM=
exec "$(dirname "$0")/test.sh" -m more tests/security
