# Sourced by the commands: where things are, and how a preset is built.
# shellcheck shell=bash

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export TL_DEPS_DIR=${TL_DEPS_DIR:-$ROOT/.deps}
# Where the library looks for a wheel of NVRTC.
export TL_WHEEL_PATH=${TL_WHEEL_PATH:-$TL_DEPS_DIR/wheels}
JOBS=${TL_JOBS:-$(nproc)}
# ccache, where there is one: the same source in another clone or build directory is the same.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$ROOT} CCACHE_NOHASHDIR=1

say() { printf '\n== %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# exported_symbols LIBRARY: one NAME@@VERSION a line, without the version's own symbol.
exported_symbols() { nm -D --defined-only --with-symbol-versions "$1" | awk '$2 != "A" { print $3 }' | sort; }

# build_preset PRESET DIR [TARGET...]: configures only when there is something to configure; Ninja
# sees changed CMake files and new sources by itself.
build_preset() {
  local preset=$1 dir=$2
  shift 2
  if [ ! -e "$ROOT/$dir/build.ninja" ] || [ "$(cat "$ROOT/$dir/.preset" 2>/dev/null)" != "$preset" ]; then
    # A changed preset must not inherit another one's cached flags.
    rm -f "$ROOT/$dir/CMakeCache.txt"
    (cd "$ROOT" && cmake --preset "$preset" >"/tmp/tl-configure.$$" 2>&1) ||
      { cat "/tmp/tl-configure.$$" >&2; rm -f "/tmp/tl-configure.$$"; return 1; }
    rm -f "/tmp/tl-configure.$$"
    echo "$preset" >"$ROOT/$dir/.preset"
  fi
  ninja --quiet -C "$ROOT/$dir" -j "$JOBS" "$@"
}
