#!/usr/bin/env bash
# Everything that needs a GPU, from an install prefix: tests, sanitizers, the cost of the service, times
# beside PyTorch. Writes logs to OUT.
#
#   perf/gpu_session.sh PREFIX OUT
set -uo pipefail
PREFIX=$(cd "$1" && pwd)
OUT=$2
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TL=$PREFIX/bin/tl
export TL_CACHE_DIR=$(mktemp -d)

export PREFIX OUT TL
failed=()
# step NAME COMMAND...
step() {
  local name=$1 start=$SECONDS
  shift
  if timeout 240 bash -c '"$@"' step "$@" >>"$OUT/session.log" 2>&1; then
    printf 'ok      %-28s %4d s\n' "$name" $((SECONDS - start))
  else
    printf 'FAILED  %-28s %4d s\n' "$name" $((SECONDS - start))
    failed+=("$name")
  fi
}

# A cache that another machine filled with another NVRTC, here and with none at all: no compile.
foreign_cache() {
  set -e
  local hide
  for hide in "" 1; do
    rm -rf "$TL_CACHE_DIR.warm"
    cp -r "$PREFIX/warm" "$TL_CACHE_DIR.warm"
    TL_HIDE_CUDA=$hide TL_CACHE_DIR=$TL_CACHE_DIR.warm \
      "$TL" check gemm --backend cuda --dim M=129 --dim N=72 --dim K=40
    TL_HIDE_CUDA=$hide TL_CACHE_DIR=$TL_CACHE_DIR.warm \
      "$TL" compile gemm --stats --emit report >"$OUT/foreign.log" 2>&1
    cat "$OUT/foreign.log"
    grep -q '"compiles": 0' "$OUT/foreign.log" && grep -q '"origin": "cache"' "$OUT/foreign.log"
  done
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | tee "$OUT/gpu.txt"
step driver "$PREFIX/bin/unit_cuda_device_gpu"
step families "$PREFIX/bin/abi_check_families" --gtest_filter='*/cuda'
step gemm "$PREFIX/bin/abi_check_gemm" --gtest_filter='*/cuda'
step rows "$PREFIX/bin/abi_check_rows" --gtest_filter='*/cuda'
step attention "$PREFIX/bin/abi_check_attention" --gtest_filter='*/cuda'
step example "$PREFIX/bin/example_gemm"
step quickstart "$PREFIX/examples/quickstart.sh" --prebuilt "$PREFIX"
step table "$PREFIX/programs/table/check_table.sh" "$TL" cuda
step "table of families" "$PREFIX/programs/table/check_table.sh" "$TL" cuda '' families.txt
export -f foreign_cache
[ ! -d "$PREFIX/warm" ] || step foreign_cache foreign_cache
for program in "$PREFIX"/programs/attention.tl; do
  [ -e "$program" ] || continue
  step "memcheck $(basename "$program")" compute-sanitizer --tool memcheck --error-exitcode 9 \
    "$TL" check "$program" --backend cuda --dim B=1 --dim H=2 --dim Hkv=1 --dim Sq=70 --dim Sk=90 -p D=64 -p bm=128
done
for tool in memcheck racecheck; do
  step "$tool gemm" compute-sanitizer --tool $tool --error-exitcode 9 \
    "$TL" check gemm --backend cuda -p bias=on -p act=gelu --dim M=100 --dim N=77 --dim K=33
  step "$tool softmax" compute-sanitizer --tool $tool --error-exitcode 9 \
    "$TL" check softmax --backend cuda --dim M=13 --dim N=229
  step "$tool pipelined gemm" compute-sanitizer --tool $tool --error-exitcode 9 \
    "$TL" check gemm --backend cuda -p M=128 -p N=256 -p K=320
  for program in product_softmax two_layouts reuse; do
    step "$tool $program" compute-sanitizer --tool $tool --error-exitcode 9 \
      "$TL" check "$PREFIX/programs/table/$program.tl" --backend cuda --dim M=100 --dim N=64 \
      $([ $program != product_softmax ] || echo --dim K=65)
  done
  step "$tool vector_add" compute-sanitizer --tool $tool --error-exitcode 9 \
    "$TL" check vector_add --backend cuda --dim N=100003
done
step service "$PREFIX/bin/perf_service_bench" --json "$OUT/service.json"
python3 "$HERE/beside_torch.py" "$TL" "$OUT/beside_torch.json"
tail -n 40 "$OUT/session.log"
printf '%s failed: %s\n' "${#failed[@]}" "${failed[*]:-}"
[ "${#failed[@]}" = 0 ]
