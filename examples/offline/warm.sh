#!/usr/bin/env bash
# Kernels compiled on one machine, used on another that compiles nothing: warm, export, open sealed.
#
#   examples/offline/warm.sh [--prebuilt DIR] [--target LIST]
#
# DIR holds bin/tl (default: build). LIST (default: cpu) may name any GPU, present or not:
# --target sm_90a,cpu. A GPU's kernels are shown to be there, since running them takes the GPU.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
BIN=$HERE/../../build/bin TARGETS=cpu
while [ $# -gt 0 ]; do
  case $1 in
    --prebuilt) BIN=$2/bin; shift 2 ;;
    --target) TARGETS=$2; shift 2 ;;
    *) echo "usage: $0 [--prebuilt DIR] [--target LIST]" >&2; exit 2 ;;
  esac
done
TL=$BIN/tl
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
step() { printf '\n== %s\n' "$*"; }

step "warm: everything in the plan, without a GPU"
export TL_CACHE_DIR=$WORK/build-machine
"$TL" warm "$HERE/plan.toml" --target "$TARGETS"

step "export: one file to carry over"
"$TL" cache export "$WORK/kernels.pack" --target "$TARGETS"
"$TL" cache ls "$WORK/kernels.pack"
"$TL" cache verify "$WORK/kernels.pack"

step "serve: an empty cache, no NVRTC, and nothing may compile"
export TL_CACHE_DIR=$WORK/server TL_HIDE_CUDA=1 TL_WHEEL_PATH=
for target in ${TARGETS//,/ }; do
  for kernel in 'gemm -p t=bf16 -p N=1024 -p K=256' 'softmax -p t=f32' "$HERE/scale_rows.tl -p t=f16"; do
    # shellcheck disable=SC2086  # the parameters are words
    "$TL" compile $kernel --target "$target" --pack "$WORK/kernels.pack" --sealed --stats \
      2>"$WORK/counters" | head -n 1
    grep -q '"compiles": 0' "$WORK/counters"
    grep -q '"hits": 1' "$WORK/counters"
  done
done
if [[ ",$TARGETS," == *,cpu,* ]]; then
  "$TL" check gemm -p t=f32 -p N=256 -p K=256 --dim M=100 --backend cpu --pack "$WORK/kernels.pack" \
    --sealed
fi

step "what was not warmed is an error that says how to warm it"
if "$TL" compile gemm -p t=f16 --target "${TARGETS%%,*}" --pack "$WORK/kernels.pack" --sealed; then
  exit 1
fi

step "done: nothing was compiled after the export"
