#!/usr/bin/env bash
# Everything that needs a GPU, from an install prefix. Writes logs to OUT.
#
#   perf/gpu_session.sh PREFIX OUT [PART...]
#
# Parts, all of them unless named:
#   check     tests and tables of checks
#   sanitize  compute-sanitizer: memcheck and racecheck
#   measure   tuning, the cost of the service, times beside PyTorch
#   trials    times of what is no default, beside the default
set -uo pipefail
PREFIX=$(cd "$1" && pwd)
OUT=$2
shift 2
PARTS=" ${*:-check sanitize measure trials} "
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TL=$PREFIX/bin/tl
export TL_CACHE_DIR=$(mktemp -d)

export PREFIX OUT TL
LOGS=$(mktemp -d)
# step NAME COMMAND...: correctness has no need of the GPU alone, so steps run beside each other.
step() {
  while [ "$(jobs -rp | wc -l)" -ge "${TL_STEPS:-12}" ]; do wait -n; done
  run_step "$@" &
}
run_step() {
  local name=$1 start=$SECONDS result=ok
  shift
  timeout 400 bash -c '"$@"' step "$@" >"$LOGS/$name" 2>&1 || result=FAILED
  # At once, in OUT: the machine may be gone before the end.
  printf '%-7s %-32s %4d s\n' $result "$name" $((SECONDS - start)) | tee -a "$OUT/steps.txt"
  [ $result = ok ] || { printf '== %s\n' "$name"; tail -n 12 "$LOGS/$name"; } | tee -a "$OUT/failed.txt"
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

check() {
  step driver "$PREFIX/bin/unit_cuda_device_gpu"
  step families "$PREFIX/bin/abi_check_families" --gtest_filter='*/cuda'
  step gemm "$PREFIX/bin/abi_check_gemm" --gtest_filter='*/cuda'
  step rows "$PREFIX/bin/abi_check_rows" --gtest_filter='*/cuda'
  step attention "$PREFIX/bin/abi_check_attention" --gtest_filter='*/cuda'
  step example "$PREFIX/bin/example_gemm"
  step "example of a program of one's own" "$PREFIX/bin/example_custom_kernel"
  step "example of a plugin" "$PREFIX/bin/example_plugin_host" "$PREFIX/bin/example_plugin.so" \
    "$PREFIX/lib/libtilejit.so.1"
  [ ! -e "$PREFIX/bin/example_embed" ] || step "example in Rust" env LD_LIBRARY_PATH="$PREFIX/lib" \
    "$PREFIX/bin/example_embed"
  step quickstart "$PREFIX/examples/quickstart.sh" --prebuilt "$PREFIX"
  for table in checks families; do
    for shard in 0 1 2 3 4 5; do
      step "table of $table, $shard of 6" "$PREFIX/programs/table/check_table.sh" "$TL" cuda '' $table.txt $shard/6
    done
  done
  for shard in 0 1 2 3 4 5; do
    step "table without sm_90a's own, $shard of 6" \
      "$PREFIX/programs/table/check_table.sh" "$TL" cuda sm_90 checks.txt $shard/6
  done
  # At the sizes that are measured; the reference computes a sample of blocks.
  for args in "gemm -p M=4096 -p N=4096 -p K=4096" "gemm --dim M=8192 --dim N=8192 --dim K=8192" \
    "gemm -p own=on -p bm=128 -p bn=128 -p stages=4 -p M=4096 -p N=4096 -p K=4096" \
    "gemm -p t=e4m3 -p tc=f32 -p fast=on -p M=4096 -p N=4096 -p K=4096" \
    "gemm -p M=4097 -p N=4095 -p K=4103" "gemm -p M=16 -p N=8192 -p K=8192" "softmax --dim M=16384 --dim N=4096" \
    "rms_norm -p silu=on --dim M=302400 -p C=1024" "attention -p causal=on --dim B=4 --dim H=16 --dim Hkv=16 --dim Sq=4096 --dim Sk=4096" \
    "$PREFIX/programs/attention.tl --dim B=4 --dim H=16 --dim Hkv=16 --dim Sq=4096 --dim Sk=4096 -p causal=on" \
    "mla_decode --dim B=64 --dim H=128 --dim Lmax=8192 --dim pages=8192 --dim P=66"; do
    # shellcheck disable=SC2086
    step "full size: ${args##*/}" "$TL" check $args --backend cuda
  done
  step mini_server "$PREFIX/bin/example_mini_server" --plan "$PREFIX/examples/cpp/mini_server/plan.toml" \
    --backend cuda --threads 8 --rounds 200 --tokens 700
  # Compiled without a GPU (make_prefix.sh --pack), served without NVRTC: it fails when anything compiles.
  [ ! -e "$PREFIX/server.pack" ] || step "mini_server from a pack" env TL_HIDE_CUDA=1 TL_CACHE_DIR=/nonexistent \
    "$PREFIX/bin/example_mini_server" --pack "$PREFIX/server.pack" --backend cuda --threads 8 --rounds 200
  step "TileLang's programs" env PYTHONPATH="$PREFIX/bindings/python" \
    python3 "$PREFIX/examples/python/port.py" --backend cuda
  export -f foreign_cache
  [ ! -d "$PREFIX/warm" ] || step foreign_cache foreign_cache
  wait
}

sanitize() {
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
    for args in channels "channels -p depth=5 -p thr=128" group_products "group_products -p t=bf16 -p stages=3"; do
      read -r program choices <<<"$args"
      # shellcheck disable=SC2086
      step "$tool $args" compute-sanitizer --tool $tool --error-exitcode 9 \
        "$TL" check "$PREFIX/programs/table/$program.tl" --backend cuda $choices --dim M=70 --dim N=200 \
        $([ $program != group_products ] || echo --dim K=100)
    done
    for args in "rms_norm --dim M=9 --dim C=229" "layer_norm --dim M=9 --dim C=229" "silu_and_mul --dim M=3 --dim N=77" \
      "gemm --dim M=200 --dim N=300 --dim K=328" "gemm -p M=200 -p N=259 -p K=333" "gemm --dim M=200 --dim N=259 --dim K=333" \
      "gemm -p M=1100 -p N=7680 -p K=200" "gemm -p boxes=off -p M=1100 -p N=7680 -p K=200" \
      "gemm -p own=on -p bm=128 -p bn=128 -p stages=4 -p M=1100 -p N=7680 -p K=200" \
      "gemm -p M=1024 -p N=7680 -p K=200" "gemm -p boxes=off -p M=1024 -p N=7700 -p K=200" \
      "gemm -p t=e4m3 -p M=200 -p N=300 -p K=328" \
      "gemm -p t=e4m3 -p tc=bf16 -p fast=on -p M=1100 -p N=7680 -p K=400" "gemm -p M=17 --dim N=200 --dim K=3000" "gemm -p M=50 --dim N=200 --dim K=3000" \
      "$PREFIX/programs/table/hints.tl --target sm_90 --dim M=200 --dim N=136 --dim K=200" \
      "$PREFIX/programs/table/hints.tl --dim M=200 --dim N=136 --dim K=200" \
      "attention_decode -p swap=on --dim B=3 --dim H=8 --dim Hkv=2 --dim Lmax=300 --dim pages=16 --dim P=4" \
      "gemm_split_k --dim M=50 --dim N=70 --dim K=3000 --dim S=7" "softmax --dim M=5 --dim N=9000" \
      "mla_decode --dim B=2 --dim H=64 --dim Lmax=200 --dim pages=8 --dim P=3" \
      "attention -p causal=on --dim B=1 --dim H=2 --dim Hkv=1 --dim Sq=300 --dim Sk=333" \
      "attention -p partition=on -p causal=on --dim B=1 --dim H=2 --dim Hkv=1 --dim Sq=300 --dim Sk=333" \
      "attention -p turns=on -p partition=on -p causal=on --dim B=1 --dim H=2 --dim Hkv=1 --dim Sq=300 --dim Sk=333"; do
      # shellcheck disable=SC2086
      step "$tool ${args##*/}" compute-sanitizer --tool $tool --error-exitcode 9 "$TL" check $args --backend cuda
    done
  done
  wait
}

# What is measured runs alone.
measure() {
  run_step tuning "$PREFIX/bin/abi_tune_gpu"
  run_step service "$PREFIX/bin/perf_service_bench" --json "$OUT/service.json"
  python3 "$HERE/beside_torch.py" "$TL" "$OUT/beside_torch.json"
}

trials() {
  python3 "$HERE/beside_torch.py" --trials "$TL" "$OUT/trials.json"
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | tee "$OUT/gpu.txt"
for part in check sanitize measure trials; do
  [[ $PARTS != *" $part "* ]] || $part
done
for log in "$LOGS"/*; do
  printf '== %s\n' "$(basename "$log")"
  cat "$log"
done >"$OUT/session.log"
printf '%s steps, %s failed\n' "$(wc -l <"$OUT/steps.txt")" "$(grep -c ^FAILED "$OUT/steps.txt")"
! grep -q ^FAILED "$OUT/steps.txt"
