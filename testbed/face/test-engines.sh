#!/usr/bin/env bash
# make test-engines: what the product promises of an engine, judged by SGLang, vLLM and llama.cpp on CPU (2.1 GB to download, once).
set -euo pipefail
export SPARKLOOM_ENGINES=1 SPARKLOOM_VM=
exec "$(dirname "$0")/test.sh" -m engines tests/rack
