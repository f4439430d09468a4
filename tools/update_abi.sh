#!/usr/bin/env bash
# Writes abi/tilejit.abi, what tests/run.sh --all compares the library's interface with. Run it after
# an intended addition to include/tl/tl.h, never to make a failing comparison pass.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
"$ROOT/tools/deps.sh" all
build_preset "$(cat "$ROOT/build/.preset" 2>/dev/null || echo release)" build tilejit
# Locations stay: by them abidiff knows which types are public.
abidw --headers-dir "$ROOT/include/tl" --no-comp-dir-path --no-corpus-path \
  --out-file "$ROOT/abi/tilejit.abi" "$ROOT/build/lib/libtilejit.so.1"
