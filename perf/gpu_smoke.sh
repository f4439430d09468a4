#!/usr/bin/env bash
# First look at a GPU machine from an install prefix: devices, the families against the reference
# interpreter, compute-sanitizer where the machine allows it, times.
#
#   perf/gpu_smoke.sh PREFIX
set -uo pipefail
PREFIX=$1
TL=$PREFIX/bin/tl
export TL_CACHE_DIR=${TL_CACHE_DIR:-$(mktemp -d)}

failed=0
try() {
  printf '+ %s\n' "$*"
  timeout 120 "$@" 2>&1 | tail -n 6
  local rc=${PIPESTATUS[0]}
  [ "$rc" = 0 ] || { failed=$((failed + 1)); printf '! exit %s\n' "$rc"; }
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
try "$TL" devices
for n in 1 1000 1048577; do try "$TL" check vector_add --backend cuda --dim N=$n; done
for t in bf16 f16 f32 f64; do
  for ta in off on; do
    for tb in off on; do
      try "$TL" check gemm --backend cuda -p t=$t -p ta=$ta -p tb=$tb --dim M=100 --dim N=77 --dim K=33
    done
  done
done
for s in 0 1 7 129; do try "$TL" check gemm --backend cuda --dim M=$s --dim N=$s --dim K=$s; done
for act in relu gelu gelu_tanh silu; do
  try "$TL" check gemm --backend cuda -p bias=on -p act=$act --dim M=129 --dim N=72 --dim K=40
done
try "$TL" check gemm --backend cuda --dim M=4097 --dim N=4095 --dim K=4103
for n in 1 96 160 229 4097; do try "$TL" check softmax --backend cuda --dim M=13 --dim N=$n; done
for sanitizer in memcheck racecheck; do
  try compute-sanitizer --tool $sanitizer --error-exitcode 9 "$TL" check gemm --backend cuda --dim M=100 --dim N=77 --dim K=33
  try compute-sanitizer --tool $sanitizer --error-exitcode 9 "$TL" check softmax --backend cuda --dim M=13 --dim N=229
done
try "$TL" bench gemm --dim M=4096 --dim N=4096 --dim K=4096
try "$TL" bench softmax --dim M=16384 --dim N=4096
try "$TL" bench vector_add --dim N=16777216
try "$TL" cache stats
printf '%s failed\n' "$failed"
