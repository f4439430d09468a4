#!/usr/bin/env bash
# Makes a stripped install prefix that runs without this tree: for a machine with a GPU and without
# network. Then there: DIR/examples/quickstart.sh --prebuilt DIR
#
#   tools/make_prefix.sh [--cpu] [--nvrtc] DIR
#
# --cpu adds the CPU module (37 MB), --nvrtc the wheel of NVRTC where it was installed. Besides the
# library: the bindings, the examples, the benchmarks, the tests through the C interface and those that need a GPU.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

CPU= NVRTC= DIR=
for arg in "$@"; do
  case $arg in
    --cpu) CPU=1 ;;
    --nvrtc) NVRTC=1 ;;
    -*) die "usage: tools/make_prefix.sh [--cpu] [--nvrtc] DIR" ;;
    *) DIR=$arg ;;
  esac
done
[ -n "$DIR" ] || die "usage: tools/make_prefix.sh [--cpu] [--nvrtc] DIR"

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
if [ -n "$NVRTC" ]; then
  mkdir -p "$DIR/lib/nvidia/cu13/lib"
  for file in "$TL_WHEEL_PATH"/nvidia/{cu13,cuda_nvrtc}/lib/libnvrtc*; do
    case $file in *'*'* | *.alt.*) continue ;; esac
    cp "$file" "$DIR/lib/nvidia/cu13/lib/"
  done
fi
du -sh "$DIR"
