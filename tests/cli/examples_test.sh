#!/usr/bin/env bash
# The examples do what they say.
#   examples_test.sh BUILD_DIR
set -euo pipefail
BUILD=$1
[ -x "$BUILD/bin/example_gemm" ] || exit 77
export TL_CACHE_DIR
TL_CACHE_DIR=$(mktemp -d)
trap 'rm -rf "$TL_CACHE_DIR"' EXIT

"$BUILD/bin/example_gemm" | tee "$TL_CACHE_DIR/first"
grep -q ' 0 hits, 1 compiles' "$TL_CACHE_DIR/first"
"$BUILD/bin/example_gemm" | tee "$TL_CACHE_DIR/second"
grep -q ' 1 hits, 0 compiles' "$TL_CACHE_DIR/second"
"$BUILD/bin/example_custom_kernel" | tee "$TL_CACHE_DIR/custom"
grep -q "unknown name 'xx'" "$TL_CACHE_DIR/custom"
"$BUILD/bin/example_plugin_host" "$BUILD/bin/example_plugin.so" "$BUILD/lib/libtilejit.so.1" |
  tee "$TL_CACHE_DIR/plugin"
[ "$(grep -c 'all right' "$TL_CACHE_DIR/plugin")" = 2 ]
"$BUILD/bin/example_serve" | grep 'all right.* after sealing 0'
PLAN=$(dirname "$0")/../../examples/cpp/mini_server/plan.toml
# The C examples take the best device, a GPU where there is one.
if "$BUILD/bin/tl" devices | grep -q ' cuda '; then
  "$BUILD/bin/example_mini_server" --plan "$PLAN" --backend cuda --threads 3 --rounds 3 --tokens 40 |
    grep 'compiled after sealing: 0'
fi
# These run on the CPU only.
if "$BUILD/bin/tl" devices | grep -q ' cpu '; then
  # And for whatever else there is a compiler of, which needs no GPU.
  TARGETS=cpu
  for target in sm_90a gfx90a; do
    ! "$BUILD/bin/tl" compile vector_add --target $target >"$TL_CACHE_DIR/tried" 2>&1 || TARGETS+=,$target
  done
  "$(dirname "$0")/../../examples/offline/warm.sh" --prebuilt "$BUILD" --target "$TARGETS"
  "$BUILD/bin/example_mini_server" --plan "$PLAN" --backend cpu --threads 3 --rounds 3 --tokens 40 |
    tee "$TL_CACHE_DIR/server"
  grep -q '3 kernels, 3 of them compiled now' "$TL_CACHE_DIR/server"
  grep -q 'compiled after sealing: 0' "$TL_CACHE_DIR/server"
  # From a pack that nobody can write, without a cache.
  "$BUILD/bin/tl" cache export "$TL_CACHE_DIR/server.pack" --target cpu
  chmod 0444 "$TL_CACHE_DIR/server.pack"
  TL_CACHE_DIR=/nonexistent "$BUILD/bin/example_mini_server" --pack "$TL_CACHE_DIR/server.pack" \
    --backend cpu --threads 2 --rounds 2 --tokens 7 | tee "$TL_CACHE_DIR/packed"
  grep -q 'hits 3, misses 0, compiles 0' "$TL_CACHE_DIR/packed"
  # What the pack lacks is named before anything is served.
  ! "$BUILD/bin/example_mini_server" --pack "$TL_CACHE_DIR/none.pack" --backend cpu \
    2>"$TL_CACHE_DIR/missing" || exit 1
  grep -q 'family = "attention"' "$TL_CACHE_DIR/missing"
  [ "$("$BUILD/bin/example_readme")" = $'4 4\n10 10' ]
  "$BUILD/bin/example_tune" | tee "$TL_CACHE_DIR/tuned"
  grep -q '\<bn=.* 6 of 6 measured$' "$TL_CACHE_DIR/tuned"
  grep -q '^1/512 is 0.00195' "$TL_CACHE_DIR/tuned"
fi
