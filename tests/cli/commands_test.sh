#!/usr/bin/env bash
# The command line from outside: what it prints, what it exits with, what a second process is spared.
#   commands_test.sh BUILD_DIR
set -uo pipefail
TL=$1/bin/tl
[ -x "$TL" ] || exit 77
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
export TL_CACHE_DIR=$WORK/cache
cd "$WORK" || exit 1
failures=0

# expect CODE PATTERN ARGUMENTS...: exit code, and a line of output (both streams) like PATTERN, if
# that is not empty.
expect() {
  local code=$1 pattern=$2 rc=0
  shift 2
  "$TL" "$@" >out 2>&1 </dev/null || rc=$?
  if [ "$rc" != "$code" ] || { [ "$pattern" ] && ! grep -qE -- "$pattern" out; }; then
    failures=$((failures + 1))
    printf 'tl %s: exit %s, expected %s and /%s/; printed:\n' "$*" "$rc" "$code" "$pattern"
    cat out
  fi
}

printf 'tl 1.0\nkernel twice(N: dim) {\n  in X: tensor<f32>[N]\n  out Y: tensor<f32>[N]\n' >good.tl
cp good.tl bad.tl
cat >>good.tl <<'END'
  launch n in ceildiv(N, 64) {
    x = alloc_fragment<f32>[64]
    copy X[n*64] -> x
    parallel i in 64 { x[i] = 2.0 * x[i] }
    copy x -> Y[n*64]
  }
}
END
printf '  launch n in N {\n\tcopy Z[n] -> Y[n]\n  }\n}\n' >>bad.tl

# Help, with examples, for every command.
expect 0 'Exit code' --help
expect 0 '^tl [0-9]+\.' --version
for command in devices families compile check bench cache 'cache stats' 'cache ls' 'cache verify' \
  'cache export' 'cache import' warm query tune layout; do
  expect 0 'Examples:' $command --help
done

# Devices and families.
expect 0 'reference interpreter' devices
expect 0 '"backend": "reference"' devices --json
expect 0 '^gemm ' families
expect 0 'out C: tensor' families gemm
expect 0 '^tl 1.0' families gemm --source
expect 2 "no family 'gem'" families gem

# Wrong usage is 2.
expect 2 'INVALID_ARGUMENT' no-such-command
expect 2 'PROGRAM is required' check
expect 2 'NAME=VALUE' check gemm -p M
expect 2 'given twice' check gemm -p M=1 -p M=2
expect 2 'from 0 up' check gemm --dim M=-1
expect 2 'its dynamic dims are N' check vector_add --dim Q=1 --backend reference
expect 2 'a target such as sm_90a or cpu is expected, and the text is empty' compile good.tl --target ''
expect 2 'seed.*-1' check good.tl --seed -1
expect 2 'seed.*-1' bench good.tl --seed -1
expect 2 'reference-work.*-1' check good.tl --reference-work -1
expect 2 'shared-budget.*-1' compile good.tl --shared-budget -1
expect 2 'neither a readable file nor a family' check missing.tl
expect 2 'neither a readable file nor a family' check .
expect 2 'has no ptx' compile good.tl --target reference --emit ptx
expect 2 "cannot write" compile good.tl --target reference --emit ir -o no/such/dir

# Anything else that fails is 3, and points into the program.
expect 3 "^error: INVALID_ARGUMENT: .*'Z'" compile bad.tl --target reference
expect 3 '^bad.tl:6:7$' compile bad.tl --target reference
expect 3 "no parameter 'q'" compile gemm -p q=1
expect 3 "'x' is no dtype" compile gemm -p t=x
expect 3 'UNAVAILABLE' check gemm --backend hip
expect 3 "NOT_FOUND: there is no target or GPU 'sm_91'; there are .*sm_90a" check gemm --target sm_91
expect 3 'the budget given is 1 per block.* Give a budget of at least [0-9]+, or none' \
  compile gemm --target sm_80 --shared-budget 1
expect 3 'factor of 2, or the budget larger' compile gemm --target sm_80 --shared-budget 20000
[ "$("$TL" compile bad.tl --target reference 2>&1 | tail -n 1)" = $'    | \t     ^~~~' ] ||
  { failures=$((failures + 1)); echo 'the mark is not below the name:'; cat out; }

# A line of the program is shown so that a terminal can show it, and the mark stays where it belongs.
shows() {
  printf "$1" >bytes.tl
  "$TL" compile bytes.tl --target reference 2>&1 | tail -n 2 >out
  [ "$(cat out)" = "$2"$'\n'"$3" ] || { failures=$((failures + 1)); echo "not as expected:"; cat -v out; }
}
shows 'tl 1.0\nkernel k() { } a\0b\n' '  2 | kernel k() { } a\x00b' '    |                 ^~~~'
shows 'tl 1.0 # \xc3\xa4 \xff \033[31m\n' $'  1 | tl 1.0 # \xc3\xa4 \\xFF \\x1B[31m' '    |            ^~~~'
shows 'tl 1.0\nkernel k() { launch { clear x } } # \xe2\x82\xac \033[31m\n' \
  $'  2 | kernel k() { launch { clear x } } # \xe2\x82\xac \\x1B[31m' '    |                             ^'

# Texts and files.
expect 0 'kernel twice' compile good.tl --target reference --emit ir
expect 0 'in X: f32\[N\]' compile good.tl --target reference
expect 0 '"backend"' compile good.tl --target reference --emit report
expect 0 '' compile good.tl --target reference --emit ir -o program.tl
expect 0 'PASS' check program.tl --backend reference --dim N=100

# Checks.
expect 0 'default taken' check good.tl --backend reference
expect 0 '"pass": true' check good.tl --backend reference --dim N=1000 --json
for n in 0 1 129; do
  expect 0 'PASS' check gemm --backend reference -p M=$n -p N=72 --dim K=40 --seed 3
done

# Pictures of layouts.
expect 0 '^</svg>' layout mma_c
expect 0 'mma_c: 16x8 lane .32,2. slot .2,1. .2,64.<' layout mma_c
expect 0 '^</svg>' layout blocked:128x64:bf16:8
expect 0 'ldmatrix takes 0 extra passes, plain rows 3' layout shared:64x32:bf16
expect 0 '' layout wgmma_c:96 -o picture.svg
python3 -c 'import sys, xml.dom.minidom as m; m.parse("picture.svg")' ||
  { failures=$((failures + 1)); echo 'picture.svg is no XML'; }
expect 2 'NAME is required' layout
expect 2 "INVALID_ARGUMENT: there is no layout 'mma_x'; did you mean 'mma_." layout mma_x
expect 2 'for example mma_c, blocked:128x64:bf16:8' layout picture
expect 2 "'128' is no tile: expected ROWSxCOLS .* the form is blocked:ROWSxCOLS" layout blocked:128
expect 2 "'q' is no dtype" layout mma_c:q
expect 2 "one field too many; the form is mma_c" layout mma_c:bf16:3
expect 2 'the tile is missing' layout shared
expect 2 'too large to draw' layout blocked:512x512
expect 2 'multiples of 8' layout wgmma_c:12
expect 2 'cannot write' layout mma_c -o no/such/dir.svg

# Packs.
expect 3 'NOT_FOUND: the cache at .* holds no kernel .* for sm_80; warm it first' cache export my.pack --target sm_80
expect 0 'my.pack: [1-9][0-9]* kernels, 0 tuned' cache export my.pack --target reference
expect 0 '^[0-9a-f]{12}  reference .* KiB  twice' cache ls my.pack
expect 0 '"kernel": "twice"' cache ls --json
expect 0 'checked, 0 damaged' cache verify my.pack
expect 0 '^0 kernels added, [1-9]' cache import my.pack
expect 0 '"damaged": 0' cache verify --json
expect 3 'NOT_FOUND: .*missing.pack' cache verify missing.pack
expect 2 'PACK is required' cache import
printf 'no pack' >text.pack
expect 1 'DATA_LOSS: text.pack is no cache of this version' cache import text.pack
# A byte of a program in it: verification and import refuse, and no kernel is lost to it.
python3 - my.pack bad.pack <<'END'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[data.rindex(b"parallel")] ^= 1
open(sys.argv[2], "wb").write(data)
END
expect 1 'entry [0-9]+ is damaged' cache verify bad.pack
expect 1 'DATA_LOSS: bad.pack is damaged and nothing of it was taken' cache import bad.pack

# Warming and sealing.
cat >plan.toml <<'END'
plan = 1
targets = ["reference"]
[[kernel]]
file = "good.tl"
[[kernel]]
family = "softmax"
params = { t = ["f32", "f16"] }
END
TL_CACHE_DIR=$WORK/warmed expect 0 '^3 kernels: 3 compiled, 0 were there, 0 failed$' warm plan.toml -j 2
TL_CACHE_DIR=$WORK/warmed expect 0 '"present": 3' warm plan.toml --json
TL_CACHE_DIR=$WORK/warmed expect 0 'warm.pack: 3 kernels' cache export warm.pack
TL_CACHE_DIR=$WORK/sealed expect 0 '"hits": 1' \
  compile softmax -p t=f16 --target reference --pack warm.pack --sealed --stats
TL_CACHE_DIR=$WORK/sealed expect 3 "^error: UNAVAILABLE: this context is sealed and has no kernel 'softmax'" \
  compile softmax -p t=bf16 --target reference --pack warm.pack --sealed
TL_CACHE_DIR=$WORK/sealed expect 3 '^family = "softmax"' \
  compile softmax -p t=bf16 --target reference --pack warm.pack --sealed
printf '[[kernel]]\nfamily = "softmax"\nparams = { q = 1 }\n[[kernel]]\nfile = "bad.tl"\n' >>plan.toml
TL_CACHE_DIR=$WORK/warmed expect 3 'in softmax .q=1. for reference, asked for at plan.toml:8$' warm plan.toml
TL_CACHE_DIR=$WORK/warmed expect 3 'in bad.tl:6:7 for reference, asked for at plan.toml:11$' warm plan.toml
TL_CACHE_DIR=$WORK/warmed expect 3 '^5 kernels: 0 compiled, 3 were there, 2 failed$' warm plan.toml
printf 'plan = 1\n[[kernel]]\nfamly = "softmax"\n' >typo.toml
expect 3 "^error: INVALID_ARGUMENT: a kernel has no key 'famly'.*did you mean 'family'" warm typo.toml
expect 3 '^typo.toml:3:1$' warm typo.toml
expect 3 'there is no target or GPU .sm_1' warm plan.toml --target reference,sm_1
expect 2 "cannot read the plan 'missing.toml'" warm missing.toml
expect 2 "the plan '/dev/null' is empty" warm /dev/null

# Queries.
expect 0 '^configuration .*bm=' query gemm -p t=bf16 --gpu H100
expect 0 'bytes of shared memory' query gemm -p t=bf16 --target sm_80
expect 0 '"cached": false' query gemm -p t=bf16 --target sm_80 --json
expect 0 '^cached         yes, built by reference' query good.tl --target reference
expect 2 'excludes' query gemm --target sm_80 --gpu H100
expect 2 'gpu.*the text is empty' query gemm --gpu ''
expect 3 "'where rows > 0' does not hold" query gemm -p rows=-5 --target sm_90a
expect 2 "'/dev/null' is empty" compile /dev/null

if "$TL" devices | grep -q ' cpu '; then
  expect 0 'PASS' check gemm --backend cpu -p M=129 -p N=72 -p K=40
  expect 0 'GB/s.*TFLOP/s' bench gemm --backend cpu -p M=64 -p N=64 --dim K=64 --flops '2*M*N*K'
  expect 2 'product of numbers and dims' bench gemm --backend cpu --dim M=64 --flops 'M+N'
  expect 0 '"median_us"' bench good.tl --backend cpu --dim N=1000 --json
  # Tuning, and who takes what it found.
  softmax=(softmax -p t=f32 -p N=64)
  expect 0 '^chosen by      default$' query "${softmax[@]}" --target cpu
  expect 0 '^  6 combinations: 0 refused, 6 built, ' tune "${softmax[@]}" --dim M=8 --backend cpu --budget 20
  expect 0 '^  recorded' tune "${softmax[@]}" --dim M=8 --target cpu --budget 20
  expect 0 '"recorded": false' tune "${softmax[@]}" -p bm=1 -p bn=64,512 --dim M=8 --target cpu --json
  expect 0 '^chosen by      record: .* us for M=8 N=64 on .*, untuned' query "${softmax[@]}" --target cpu
  expect 0 '"configuration_from": "nearest record"' query softmax -p t=f32 -p N=100 --target cpu --json
  expect 0 '"configuration_from": "record"' compile "${softmax[@]}" --target cpu --emit report
  expect 0 '^chosen by      caller$' query "${softmax[@]}" -p bm=8 --target cpu
  for seconds in 0 -1 inf nan '' 3s; do
    expect 2 "budget.*more than 0; found '$seconds'" tune softmax --budget "$seconds"
  done
  expect 2 "candidate-seconds.*0 or more; found 'inf'" tune softmax --candidate-seconds inf
  # A parameter that follows from a dim keeps nobody from the record of a near one.
  expect 0 '^  recorded' tune gemm -p t=f32 -p M=48 -p N=64 -p K=32 --target cpu --candidates 2
  for m in 33 64 90; do
    expect 0 'nearest record' query gemm -p t=f32 -p M=$m -p N=64 -p K=32 --target cpu
  done
  expect 0 '^chosen by      default' query gemm -p t=f32 -p M=48 -p N=64 -p K=32 -p rows=16 --target cpu
  # A plan: what is for this device, each with its dims; what fails keeps nobody else from it.
  cat >tune.toml <<'END'
plan = 1
[[kernel]]
family = "softmax"
params = { t = "f32", N = [32, 48] }
dims = { M = [3, 500] }
[[kernel]]
family = "gemm"
targets = ["sm_90a"]
END
  expect 0 '^4 of the plan: 4 tuned, 0 failed$' tune tune.toml --backend cpu --budget 20
  expect 0 '^softmax: N=48 t=f32 M=500$' tune tune.toml --backend cpu --budget 20
  expect 0 '^\]$' tune tune.toml --backend cpu --budget 20 --candidates 2 --json
  expect 0 '^chosen by      record: ' query softmax -p t=f32 -p N=48 --target cpu
  expect 0 '^2 kernels: 0 compiled, 2 were there' warm tune.toml --target cpu
  printf '[[kernel]]\nfile = "bad.tl"\n' >>tune.toml
  expect 3 'in bad.tl, asked for at tune.toml:9$' tune tune.toml --backend cpu --candidates 2
  expect 3 '^5 of the plan: 4 tuned, 1 failed$' tune tune.toml --backend cpu --candidates 2
  expect 2 'of its own' tune tune.toml -p t=f16 --backend cpu
  expect 3 'no kernel of the plan is for cpu' tune plan.toml --backend cpu
  expect 3 "no parameter 'bq'; did you mean" tune softmax -p bq=1,2 --backend cpu
  expect 3 "where bm . bn <= .* does not hold" tune softmax -p bm=16 -p bn=4096,8192 --backend cpu
  # The first process compiles, the second takes the kernel from the store.
  expect 0 '"compiles": 1' compile vector_add -p t=f16 --target cpu --stats
  expect 0 '"hits": 1' compile vector_add -p t=f16 --target cpu --stats
  expect 0 '"compiles": 0' compile vector_add -p t=f16 --target cpu --stats
  expect 0 '"entries": [1-9]' cache stats --json
fi

[ "$failures" = 0 ] || { echo "$failures failures"; exit 1; }
echo "all as expected"
