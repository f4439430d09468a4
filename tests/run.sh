#!/usr/bin/env bash
# Builds and runs everything that can be proved without a GPU.
#
#   tests/run.sh          release build and its tests
#   tests/run.sh --all    what CI runs: besides, warnings as errors, the sanitizers, the fuzzers,
#                         formatting, the C11 example, the ABI baseline
#
# TL_FUZZ_SECONDS (30), TL_JOBS (number of cores). The last line counts all that ran.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../tools/common.sh"
cd "$ROOT"

ALL=
case "${1:-}" in
  --all) ALL=1 ;;
  '') ;;
  *) die "usage: tests/run.sh [--all]" ;;
esac

RESULTS=$ROOT/build/results
GATES=$RESULTS/gates.txt
rm -rf "$RESULTS"
mkdir -p "$RESULTS"
: >"$GATES"

# gate NAME COMMAND...: one more test; its output is shown only when it fails.
gate() {
  local name=$1 start=$SECONDS log=$RESULTS/$1.log
  shift
  # In the background, because the shell ignores failing steps inside the condition of an "if".
  ("$@") >"$log" 2>&1 </dev/null &
  if wait $!; then
    printf 'passed %d %s\n' $((SECONDS - start)) "$name" >>"$GATES"
    printf '  %-28s passed  %4d s\n' "$name" $((SECONDS - start))
  else
    printf 'failed %d %s\n' $((SECONDS - start)) "$name" >>"$GATES"
    printf '  %-28s FAILED  %4d s\n' "$name" $((SECONDS - start))
    tail -n 60 "$log"
  fi
}

# run_ctest DIR LABELS: the tests of one build directory except those with the labels. Results go to
# the summary; the exit status of ctest is not needed there.
run_ctest() {
  local dir=$1 labels=$2
  rm -rf "$ROOT/$dir/test-cache"*
  ctest --test-dir "$ROOT/$dir" -j "$JOBS" --output-on-failure --no-tests=error -LE "$labels" \
    --output-junit "$RESULTS/$dir.xml" >"$RESULTS/$dir.log" 2>&1 || true
  if [ -s "$RESULTS/$dir.xml" ]; then
    # Only what a reader needs: failures with their output, and the totals.
    awk '/\*\*\*(Failed|Timeout|Exception)/ { show = 1 }
      /^ *Start |^ *[0-9]+\/[0-9]+ Test.*(Passed|Skipped)|tests passed/ { show = 0 }
      show || /tests passed|Total Test time/' "$RESULTS/$dir.log" | head -n 400
  else
    tail -n 30 "$RESULTS/$dir.log"
    printf 'failed 0 ctest-%s\n' "$dir" >>"$GATES"
  fi
}

# build_and_test PRESET DIR LABELS: a build that fails is a failed test, and the rest goes on.
build_and_test() {
  local preset=$1 dir=$2 labels=$3
  say "$preset"
  gate "build-$preset" build_preset "$preset" "$dir"
  if tail -n 1 "$GATES" | grep -q ^passed; then run_ctest "$dir" "$labels"; fi
}

sources() { git ls-files -- '*.h' '*.hpp' '*.cc' '*.c' | while read -r f; do [ ! -e "$f" ] || echo "$f"; done; }

check_format() { sources | xargs -r clang-format-19 --dry-run -Werror; }

check_scripts() { git ls-files -- '*.sh' .ci/run | xargs -r -n 1 bash -n; }

# The headers alone, as strict C and as C++, and the examples as any user would compile it.
check_c11() {
  local compiler
  for compiler in gcc clang-19; do
    echo '#include <tl/tl.h>' |
      "$compiler" -x c -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only -
    echo '#include <tl/tl.h>' |
      "$compiler" -x c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only -
    printf '#define TL_EXPERIMENTAL\n#include <tl/tl.hpp>\n' |
      "$compiler" -x c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -Iinclude -Ibindings/cpp -fsyntax-only -
    local source
    for source in examples/c/*.c; do
      "$compiler" -std=c11 -Wall -Wextra -Werror -Iinclude "$source" -o "$RESULTS/c11" \
        -Lbuild/lib -ltilejit -lm -pthread -Wl,-rpath,"$ROOT/build/lib"
    done
  done
}

# The header against the stored description of the interface (tools/update_abi.sh), and the library
# against the header. New functions, values and members at the end of a struct pass, since struct_size
# guards them; any other difference does not.
check_abi() {
  local report=$RESULTS/abidiff.txt status=0
  tools/update_abi.sh "$RESULTS"
  exported_symbols build/lib/libtilejit.so.1 | diff "$RESULTS/exports.txt" -
  abidiff --harmless --no-added-syms abi/tilejit.abi "$RESULTS/tilejit.abi" | tee "$report" || status=$?
  # Bits 1 and 2: the tool failed. 4 and 8: there are changes.
  [ $((status & 3)) = 0 ] &&
    ! grep -E "[1-9][0-9]* Removed|offset changed|deletion|type of '|entity changed|type name changed|\
return type changed|from value|name of .* changed|parameter .* (added|removed)" "$report"
}

run_fuzzer() {
  local name=$1 seeds=() corpus=$ROOT/build-fuzz/corpus-$1
  mkdir -p "$corpus"
  [ ! -d "tests/fuzz/corpus/$name" ] || seeds+=("tests/fuzz/corpus/$name")
  # Programs are the best seeds there are for whatever reads programs.
  seeds+=(kernels)
  "build-fuzz/bin/fuzz_$name" -max_total_time="${TL_FUZZ_SECONDS:-30}" -timeout=10 \
    -rss_limit_mb=4096 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="$RESULTS/fuzz_$name-" "$corpus" "${seeds[@]}"
}

fuzz() {
  local source name
  say "fuzzers, ${TL_FUZZ_SECONDS:-30} s each"
  compgen -G 'tests/fuzz/*.cc' >/dev/null || return 0
  local names=()
  for source in tests/fuzz/*.cc; do
    name=$(basename "$source" .cc)
    names+=("$(sed -E 's/^fuzz_|_fuzz(er)?$//g' <<<"$name")")
  done
  gate build-fuzz build_preset fuzz build-fuzz "${names[@]/#/fuzz_}"
  tail -n 1 "$GATES" | grep -q ^passed || return 0
  for name in "${names[@]}"; do gate "fuzz-$name" run_fuzzer "$name"; done
}

# intercept_tls_get_addr=0: the sanitizer takes a thread-local block of a library opened at run time for
# glibc 2.19's when it lies 16 bytes behind a page's begin, as one in 256 of LLVM's do. What stands before
# it is then read as its address and size, and the leak checker crashes on them at exit ("Tracer caught
# signal 11"). Leaks are found all the same: the blocks hang on the thread's table of blocks.
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:intercept_tls_get_addr=0
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=suppressions=$ROOT/tests/tsan.supp:history_size=4
export LSAN_OPTIONS=suppressions=$ROOT/tests/lsan.supp:print_suppressions=0

say "dependencies"
tools/deps.sh build test ${ALL:+all} absl nvrtc

if [ -z "$ALL" ]; then
  build_and_test release build gpu
else
  build_and_test ci build gpu
  say "sources"
  gate format check_format
  gate scripts check_scripts
  gate c11 check_c11
  gate abi check_abi
  tools/deps.sh absl:asan absl:tsan
  # Sweeps over thousands of shapes and tests of speed say nothing more under a sanitizer.
  build_and_test asan-ubsan build-asan 'gpu|sweep|speed'
  build_and_test tsan build-tsan 'gpu|sweep|speed'
  fuzz
fi

say "summary ($((SECONDS / 60)) min)"
exec python3 tests/summarize.py "$RESULTS"
