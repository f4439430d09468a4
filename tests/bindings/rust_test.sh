#!/usr/bin/env bash
# The Rust crates: their tests, their documentation's examples, and the example program.
#   rust_test.sh BUILD_DIR
# Debian's own toolchain where it is installed: it is the oldest that the crates promise.
set -euo pipefail
BUILD=$1
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
CARGO=$(PATH=/usr/bin:$PATH command -v cargo) || {
  echo "skipped: no cargo; 'apt-get install cargo' brings it"
  exit 77
}
[ ! -x /usr/bin/rustc ] || export RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc
# Nothing of the user's settings, nothing written outside of the build, nothing from the network.
export CARGO_HOME=$BUILD/rust/home CARGO_TARGET_DIR=$BUILD/rust/target RUSTFLAGS='-D warnings'
export TILEJIT_LIB_DIR=$BUILD/lib LD_LIBRARY_PATH=$BUILD/lib
FLAGS=(--offline --locked --jobs "${TL_JOBS:-$(nproc)}")

cd "$ROOT/bindings/rust"
"$CARGO" build "${FLAGS[@]}"
"$CARGO" test "${FLAGS[@]}" --all-features

cd "$ROOT/examples/rust/embed"
OUT=$("$CARGO" run --quiet "${FLAGS[@]}")
echo "$OUT"
grep -q "unknown name 'xx'" <<<"$OUT"
grep -q '4 threads, all right' <<<"$OUT"
grep -q 'compiled after sealing: 0' <<<"$OUT"
