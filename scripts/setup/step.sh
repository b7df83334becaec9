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

# kept COMMAND...: where SPARKLOOM_LOG names a file, all that it prints goes there.
kept() { if [[ -n ${SPARKLOOM_LOG-} ]]; then "$@" >>"$SPARKLOOM_LOG" 2>&1; else "$@"; fi; }

# say NAME TEXT: one line under a step's name.
say() { kept printf '[%s] %s\n' "$1" "$2"; }

# die NAME TEXT: a refusal; the text says what was found, what was expected, what to do.
die() {
  printf '[%s] FAILED: %s\n' "$1" "$2" >&2
  exit 2
}

# row NAME SECONDS TEXT: as testbed/base/screen.py writes one, for a person.
row() { printf '  %-16s %12s  %s' "$1" "$2 s" "$3"; }

# width: letters of one line.
width() { echo $(($(tput cols 2>/dev/null || echo 80) - 1)); }

# line NAME STARTED WHAT: a row for good; on a terminal no longer than that is wide.
line() {
  local text
  text=$(row "$1" "$(seconds_since "$2")" "$3")
  if [[ -t 1 ]]; then text=${text:0:$(width)}; fi
  printf '%s\n' "$text"
}

# drawn NAME WHAT STARTED: on a terminal a line that is drawn anew until the script, or whoever began this, ends it.
drawn() {
  while kill -0 $$ 2>/dev/null; do
    printf '\r\033[2K%.*s' "$(width)" "$(row "$1" "$(seconds_since "$3")" "$2")"
    sleep 1
  done
}

# step NAME WHAT COMMAND...: announce, run, report the time; a failure stops the script with the command's code. With a
# SPARKLOOM_LOG a person sees one row of it where it took ten seconds, and on failure the log's last lines.
step() {
  local name=$1 what=$2 started=$EPOCHREALTIME code=0 artist=
  shift 2
  say "$name" "$what"
  if [[ -n ${SPARKLOOM_LOG-} && -t 1 ]]; then
    drawn "$name" "$what" "$started" &
    artist=$!
    trap 'kill "$artist" 2>/dev/null' EXIT
  fi
  # A shell of its own with -e: after `||` bash would run a function on past its failing line.
  set +e
  (
    set -e
    kept "$@"
  )
  code=$?
  set -e
  if [[ -n $artist ]]; then
    kill "$artist"
    wait "$artist" 2>/dev/null || true
    trap - EXIT
    printf '\r\033[2K'
  fi
  if ((code)); then
    [[ -z ${SPARKLOOM_LOG-} ]] || tail -n 15 "$SPARKLOOM_LOG" | sed 's/^/  | /' >&2
    printf '[%s] FAILED after %s s (exit %d): %s\n' "$name" "$(seconds_since "$started")" "$code" "$*" >&2
    [[ -z ${SPARKLOOM_LOG-} ]] || printf 'every line is in %s; mend it, then the same command again\n' "$SPARKLOOM_LOG" >&2
    exit "$code"
  fi
  say "$name" "done in $(seconds_since "$started") s"
  [[ -z ${SPARKLOOM_LOG-} || $(seconds_since "$started") == ?.? ]] || line "$name" "$started" "$what"
}
