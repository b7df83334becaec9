#!/usr/bin/env bash
# make setup: .venv with everything that the controller needs. Safe to kill and to run again; nothing to do = under a second.
set -euo pipefail
source "$(dirname "$0")/step.sh"
cd "$REPO"

VENV=$REPO/.venv
BUSY=$VENV/.installing # present while packages are being written: a killed run left them half done

# A python that can make a venv by itself: what Debian's python3 cannot do without python3-venv.
usable_python() {
  local candidate
  for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 /usr/bin/python3; do
    "$candidate" - 2>/dev/null <<'PY' && { command -v "$candidate" && return 0; }
import ensurepip, sys, venv
sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PY
  done
  return 1
}

install_python() {
  local packages=(python3 python3-venv ca-certificates) found
  found=$(python3 --version 2>/dev/null || echo "no python3")
  command -v apt-get >/dev/null ||
    die python "found $found; expected Python 3.11 to 3.13 with venv and ensurepip. Install one, or name it: PYTHON=/path make setup"
  ((EUID == 0)) ||
    die python "found $found without venv or outside 3.11-3.13. Run: sudo apt-get update && sudo apt-get install -y ${packages[*]}"
  echo "  setup: installs with apt-get: ${packages[*]} (found $found)"
  step apt "installing ${packages[*]}" apt_install "${packages[@]}"
}

apt_install() {
  export DEBIAN_FRONTEND=noninteractive
  # An apt-get whose parent was killed may still be at work, or have left a package half configured.
  dpkg --configure -a >/dev/null 2>&1 || true
  apt-get update -qq
  apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "$@" >/dev/null
}

# The versions are all in these files; the interpreter decides which wheels fit.
packages_key() { { cat requirements.lock; echo "$python_version"; } | sha256sum; }
package_key() { sha256sum <pyproject.toml; }
source_key() { find scripts/sparkloom -name '*.py' -printf '%T@ %p\n' | sort | sha256sum; }
collections_key() { sha256sum requirements.yml scripts/setup/collections.lock | sha256sum; }

fresh() { [[ -e $VENV/.$1.done && $(<"$VENV/.$1.done") == "$2" ]]; }

# once NAME KEY WHAT COMMAND...: skip what this venv already holds under the same key.
once() {
  local name=$1 key=$2
  shift 2
  fresh "$name" "$key" && return
  step "$name" "$@"
  printf '%s\n' "$key" >"$VENV/.$name.done"
  changed=1
}

make_venv() { "$python" -m venv --clear "$VENV"; }
pip() { "$PY" -m pip --disable-pip-version-check "$@"; }

# uv first, by pip; then uv brings the rest. Where it cannot (no wheel for this machine, an index that only pip's settings
# reach) pip brings everything, in a minute more.
install_packages() {
  local only_uv=.build/uv.lock
  touch "$BUSY"
  sed -n '/^uv==/,/[^\\]$/p' requirements.lock >"$only_uv"
  { pip install --quiet --no-deps --require-hashes -r "$only_uv" && with_uv; } || {
    say packages "uv could not; pip does it"
    pip install --quiet --no-deps --require-hashes -r requirements.lock
  }
  rm "$BUSY"
}
with_uv() {
  local index
  index=$(pip_index)
  [[ -z $index ]] || local -x UV_DEFAULT_INDEX=$index
  "$VENV/bin/uv" --quiet pip install --python "$PY" --no-deps --require-hashes -r requirements.lock
}
install_package() { pip install --quiet --no-deps --no-build-isolation --editable .; }
# Else each run does it anew where Python may write nothing (PYTHONDONTWRITEBYTECODE, a checkout of root's).
compile_all() {
  # What is not for this Python cannot be compiled, and nobody runs it.
  "$PY" -m compileall -q -j0 "$VENV"/lib/python3*/site-packages "$VENV/collections" >/dev/null || true
}
compile_source() { "$PY" -m compileall -q -j0 scripts/sparkloom; }
install_collections() { "$PY" scripts/setup/fetch_collections.py --into "$VENV/collections"; }

mkdir -p .build
exec 9>.build/setup.lock
flock -n 9 || { say setup "another setup is running here: waiting for it"; flock 9; }

changed=0
if [[ ! -x $PY || -e $BUSY || ! -e $VENV/.packages.done ]]; then
  python=$(usable_python) || { install_python; hash -r; python=$(usable_python) ||
    die python "found $(python3 --version 2>&1) after installing; expected Python 3.11 to 3.13 with venv. Name one: PYTHON=/path make setup"; }
  step venv "making .venv with $python ($("$python" --version))" make_venv
fi
python_version=$(readlink -f "$PY")
count=$(grep -c '==' requirements.lock)
once packages "$(packages_key)" "installing $count packages from requirements.lock (hashes checked)" install_packages
once package "$(package_key)" "installing sparkloom itself, editable, from scripts/sparkloom" install_package
once collections "$(collections_key)" "installing the Ansible collections that requirements.yml names" install_collections
once bytecode "$(packages_key; collections_key)" "compiling them, so that no run has to" compile_all
once source "$(source_key)" "compiling sparkloom itself" compile_source
if ((changed)); then say setup "ready in $(seconds_since "$SPARKLOOM_STARTED") s: .venv/bin/sparkloom --help"; else say setup "nothing to do"; fi
