#!/usr/bin/env bash
# Makes a stripped install prefix that runs without this tree: for a machine with a GPU and without
# network. Then there: DIR/examples/quickstart.sh --prebuilt DIR
#
#   tools/make_prefix.sh [--cpu] [--nvrtc] [--pack TARGETS] DIR
#
# --cpu adds the CPU module (37 MB), --nvrtc the wheel of NVRTC where it was installed, --pack the kernels
# of examples/cpp/mini_server, compiled here for TARGETS (sm_90a,cpu), as server.pack. Besides the library:
# the bindings, the examples, the benchmarks, the tests through the C interface and those that need a GPU.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() { die "usage: tools/make_prefix.sh [--cpu] [--nvrtc] [--pack TARGETS] DIR"; }
CPU= NVRTC= PACK= DIR=
while [ $# -gt 0 ]; do
  case $1 in
    --cpu) CPU=1 ;;
    --nvrtc) NVRTC=1 ;;
    --pack)
      [ $# -gt 1 ] || usage
      PACK=$2
      shift
      ;;
    -*) usage ;;
    *) DIR=$1 ;;
  esac
  shift
done
[ -n "$DIR" ] || usage

if [ ! -e "$ROOT/build/.preset" ]; then build_preset release build; else
  build_preset "$(cat "$ROOT/build/.preset")" build
fi

rm -rf "$DIR"
mkdir -p "$DIR"
cmake --install "$ROOT/build" --strip --prefix "$DIR" --component library >/dev/null
[ -z "$CPU" ] || cmake --install "$ROOT/build" --strip --prefix "$DIR" --component cpu >/dev/null
cp -r "$ROOT/examples" "$DIR/examples"
cp -r "$ROOT/tests/programs" "$DIR/programs"
mkdir "$DIR/bindings"
cp -r "$ROOT/bindings/rust" "$ROOT/bindings/python" "$DIR/bindings/"
# They find the library at $ORIGIN/../lib as in the build directory.
for file in "$ROOT"/build/bin/{example_*,perf_*,unit_*_gpu,abi_*}; do
  [ -f "$file" ] && [ -x "$file" ] || continue
  strip -o "$DIR/bin/$(basename "$file")" "$file"
done
# Where tests/bindings/rust_test.sh built it.
RUST=$ROOT/build/rust/target/debug/embed
[ ! -e "$RUST" ] || strip -o "$DIR/bin/example_embed" "$RUST"
if [ -n "$NVRTC" ]; then
  mkdir -p "$DIR/lib/nvidia/cu13/lib"
  for file in "$TL_WHEEL_PATH"/nvidia/{cu13,cuda_nvrtc}/lib/libnvrtc*; do
    case $file in *'*'* | *.alt.*) continue ;; esac
    cp "$file" "$DIR/lib/nvidia/cu13/lib/"
  done
fi
if [ -n "$PACK" ]; then
  CACHE=$(mktemp -d)
  trap 'rm -rf "$CACHE"' EXIT
  export TL_CACHE_DIR=$CACHE
  "$ROOT/build/bin/tl" warm "$ROOT/examples/cpp/mini_server/plan.toml" --target "$PACK"
  "$ROOT/build/bin/tl" cache export "$DIR/server.pack" --target "$PACK"
fi
du -sh "$DIR"
