#!/usr/bin/env bash
# A cache that one NVRTC filled serves a machine with another NVRTC and a machine with none, and the
# report says who built the binary.
set -euo pipefail
TL=$1/bin/tl
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
export TL_CACHE_DIR=$WORK/cache TL_HIDE_CUDA=1

fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

# The directory of an NVRTC: the wheel's, or else a toolkit's.
find_nvrtc() {
  local dir
  for dir in "${TL_WHEEL_PATH:-/none}"/nvidia/{cu13,cuda_nvrtc}/lib /usr/local/cuda*/lib64; do
    ls "$dir"/libnvrtc.so.1[23] >/dev/null 2>&1 && { echo "$dir"; return; }
  done
  exit 77
}

# Another version as far as anybody can tell without loading it: the same library under another build-id.
copy_with_other_build_id() {
  mkdir -p "$2"
  cp -L "$1"/libnvrtc*.so.1* "$2"
  for library in "$2"/libnvrtc.so.1[23]; do
    python3 - "$library" <<'PY'
import sys
path = sys.argv[1]
data = bytearray(open(path, 'rb').read())
at = data.find(b'\x14\x00\x00\x00\x03\x00\x00\x00GNU\x00')  # the note with the build-id
assert at > 0, 'no build-id note'
data[at + 12] ^= 0xff
open(path, 'wb').write(data)
PY
  done
}

# compile WHEELS: the report on stdout, the counters in $WORK/stats.
compile() { TL_WHEEL_PATH=$1 "$TL" compile softmax --target sm_80 --emit report --stats 2>"$WORK/stats"; }
counter() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$WORK/stats" | head -n 1; }
built_by() { sed -n 's/.*"built_by": "\(.*\)".*/\1/p'; }

dir=$(find_nvrtc)
mkdir -p "$WORK/first/nvidia/cu13"
ln -s "$dir" "$WORK/first/nvidia/cu13/lib"
copy_with_other_build_id "$dir" "$WORK/second/nvidia/cu13/lib"

first=$(compile "$WORK/first" | built_by)
[ "$(counter compiles)" = 1 ] || fail "the first process did not compile"
[ -n "$first" ] || fail "the report does not say who built the kernel"

for wheels in "$WORK/first" "$WORK/second" "$WORK/none"; do
  again=$(compile "$wheels" | built_by)
  [ "$(counter compiles)" = 0 ] && [ "$(counter hits)" = 1 ] || fail "not served from the cache with $wheels"
  [ "$again" = "$first" ] || fail "served as built by '$again', not '$first'"
done

# With an empty cache the second one builds under its own name, and none at all says where it looked.
export TL_CACHE_DIR=$WORK/cache2
second=$(compile "$WORK/second" | built_by)
[ "$(counter compiles)" = 1 ] && [ "$second" != "$first" ] || fail "the two compilers have one identity: $second"
export TL_CACHE_DIR=$WORK/cache3
if compile "$WORK/none" >/dev/null; then fail "compiled without a compiler"; fi
grep -q "libnvrtc.so.13.*was found in" "$WORK/stats" || fail "the error does not list the places: $(cat "$WORK/stats")"
echo "ok"
