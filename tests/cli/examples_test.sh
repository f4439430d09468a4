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
"$BUILD/bin/example_cpp_dlopen_host" "$BUILD/lib/libtilejit.so.1"
# These run on the CPU only.
if "$BUILD/bin/tl" devices | grep -q ' cpu '; then
  "$(dirname "$0")/../../examples/offline/warm.sh" --prebuilt "$BUILD"
  [ "$("$BUILD/bin/example_readme")" = $'4 4\n10 10' ]
fi
