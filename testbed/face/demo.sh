#!/usr/bin/env bash
# make demo: from this checkout to streamed answers of three models, on one screen (testbed/face/demo.py); all else is kept
# in a log. PROFILE=name and OTHER=name choose the first two models; an empty PROFILE, OTHER or REAL leaves that one out.
set -euo pipefail
source "$(dirname "$0")/../../scripts/setup/step.sh"
cd "$REPO"
export SPARKLOOM_LOG=$REPO/build/demo.log
mkdir -p build
: >"$SPARKLOOM_LOG"
echo "Four virtual Sparks on this machine, and three models one after the other."
echo "What takes ten seconds or more is told here; build/demo.log keeps every line."
scripts/setup/setup.sh
export PATH=$REPO/.venv/bin:$PATH
"$PY" -m testbed demo
echo "The demo took $(seconds_since "$SPARKLOOM_STARTED") s"
