#!/usr/bin/env bash
# From nothing to verified numbers: installs what is missing, builds into build/, then compiles a
# matrix product for the best device here, launches it, checks it against the reference, times it, and
# lets a second process take it from the cache.
#
#   examples/quickstart.sh                  everything
#   examples/quickstart.sh --prebuilt DIR   no network, no installation: runs from an install prefix
#                                           (tools/make_prefix.sh makes one)
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

say() { printf '\n== %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

build() {
  source "$HERE/../tools/common.sh"
  say "dependencies"
  "$ROOT/tools/deps.sh" build absl nvrtc
  say "build"
  # A build directory that the tests configured is as good.
  local preset=release
  [ ! -e "$ROOT/build/.preset" ] || preset=$(cat "$ROOT/build/.preset")
  build_preset "$preset" build tilejit tilejit_cpu tl example_gemm
  PREFIX=$ROOT/build
}

# compile: the kernel in a process of its own; prints the report and that process' cache counters.
compile() {
  "$TL" compile gemm "${SHAPE[@]}" --emit report --stats 2>"$WORK/counters" ||
    { cat "$WORK/counters" >&2; return 1; }
}
counter() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$WORK/counters" | head -n 1; }

# Compiling for GPUs that are not here needs only NVRTC.
offline() {
  local target=$1 out=$WORK/gemm.$1.cubin
  if ! "$TL" compile gemm "${SHAPE[@]}" --target "$target" --emit binary -o "$out" 2>"$WORK/error"; then
    # Without NVRTC there is nothing to show; any other failure is one.
    grep -q nvrtc "$WORK/error" && grep -q UNAVAILABLE "$WORK/error" || { cat "$WORK/error" >&2; return 1; }
    echo "$target: skipped, NVRTC is not to be had"
    return
  fi
  [ "$(head -c 4 "$out" | tail -c 3)" = ELF ] || die "$out is not a cubin"
  echo "$target: cubin of $(stat -c %s "$out") bytes"
}

main_job() {
  TL=$PREFIX/bin/tl
  WORK=$(mktemp -d)
  trap 'rm -rf "$WORK"' EXIT
  # A cache of its own, so that the first process really compiles.
  export TL_CACHE_DIR=$WORK/cache
  SHAPE=(-p M=256 -p N=256 -p K=256)

  say "devices"
  "$TL" devices

  say "gemm compiled for the best device"
  compile
  [ "$(counter compiles)" = 1 ] || die "the first process did not compile"

  say "the same in a second process"
  compile >/dev/null
  [ "$(counter compiles)" = 0 ] && [ "$(counter hits)" = 1 ] || die "not served from the cache"
  echo "served from the cache, nothing compiled"

  say "the C example: compile, launch, verify"
  "$PREFIX/bin/example_gemm"

  say "verified against the reference interpreter, and timed"
  "$TL" check gemm "${SHAPE[@]}"
  "$TL" bench gemm "${SHAPE[@]}"

  say "offline, for GPUs that are not here"
  offline sm_80
  offline sm_90a
}

case "${1:-}" in
  '') build ;;
  --prebuilt)
    [ -n "${2:-}" ] || die "--prebuilt needs a directory"
    PREFIX=$(cd "$2" && pwd)
    ;;
  *) die "usage: examples/quickstart.sh [--prebuilt DIR]" ;;
esac
main_job
say "done in $SECONDS s"
