#!/usr/bin/env bash
# Writes abi/tilejit.abi, what tests/run.sh --all compares the interface with. Run it after an intended
# addition to include/tl/tl.h, never to make a failing comparison pass.
#
#   tools/update_abi.sh [DIR]     with DIR: writes DIR/tilejit.abi instead, and DIR/exports.txt, the
#                                 symbols with versions that a library of this header exports
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
"$ROOT/tools/deps.sh" build all

OUT=${1:-$ROOT/abi}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

# A library of the header's functions without bodies: the real one's debug information leads to all
# types of the implementation, megabytes that change with every edit.
"$ROOT/tools/abi_stub.py" "$ROOT/include/tl/tl.h" >"$WORK/stub.c"
compile_stub() {
  # By its plain name, so that the description says nothing of where it was made.
  (cd "$WORK" && gcc -std=c11 -g -w -fPIC -shared -Wl,--version-script="$ROOT/abi/tilejit.map" "$@" stub.c)
}

# What is experimental may change, so it is not described; exported it is.
compile_stub -o "$WORK/stub.so"
abidw --no-show-locs --no-corpus-path --no-comp-dir-path --out-file "$OUT/tilejit.abi" "$WORK/stub.so"
[ $# -gt 0 ] || exit 0
compile_stub -DTL_EXPERIMENTAL -o "$WORK/all.so"
exported_symbols "$WORK/all.so" | grep -v '^tl_enum_of_' >"$OUT/exports.txt"
