# Sourced, not run. One way to say what happens: the step's name, what it is about to do, the seconds it took.
# shellcheck shell=bash

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
PY=$REPO/.venv/bin/python
SPARKLOOM_STARTED=${SPARKLOOM_STARTED:-$EPOCHREALTIME}
# Ansible refuses to start without a UTF-8 locale, and a fresh machine has none set.
[[ ${LC_ALL:-${LC_CTYPE:-${LANG:-}}} == *[Uu][Tt][Ff]* ]] || export LC_ALL=C.UTF-8

# seconds_since START: with one decimal, without bc.
seconds_since() {
  local us=$((${EPOCHREALTIME/[.,]/} - ${1/[.,]/}))
  printf '%d.%d' $((us / 1000000)) $((us % 1000000 / 100000))
}

# pip_index: the index that pip is told to use here, if it is; uv does not read pip's settings.
pip_index() { if [[ -n ${PIP_INDEX_URL-} ]]; then echo "$PIP_INDEX_URL"; else "$PY" -m pip config get global.index-url 2>/dev/null || true; fi; }

# say NAME TEXT: one line under a step's name.
say() { printf '[%s] %s\n' "$1" "$2"; }

# die NAME TEXT: a refusal; the text says what was found, what was expected, what to do.
die() {
  printf '[%s] FAILED: %s\n' "$1" "$2" >&2
  exit 2
}

# step NAME WHAT COMMAND...: announce, run, report the time; a failure stops the script with the command's code.
step() {
  local name=$1 what=$2 started=$EPOCHREALTIME code=0
  shift 2
  say "$name" "$what"
  # A shell of its own with -e: after `||` bash would run a function on past its failing line.
  set +e
  (
    set -e
    "$@"
  )
  code=$?
  set -e
  if ((code)); then
    printf '[%s] FAILED after %s s (exit %d): %s\n' "$name" "$(seconds_since "$started")" "$code" "$*" >&2
    exit "$code"
  fi
  say "$name" "done in $(seconds_since "$started") s"
}
