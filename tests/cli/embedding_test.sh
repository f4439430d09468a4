#!/usr/bin/env bash
# docs/embedding.md from the outside: an installed prefix, plain compilers, no build system.
#   embedding_test.sh BUILD_DIR
set -euo pipefail
BUILD=$1
EXAMPLES=$(cd "$(dirname "$0")/../../examples" && pwd)
# What is linked here is not instrumented.
! grep -q '^TL_SANITIZE:[^=]*=.' "$BUILD/CMakeCache.txt" || exit 77
[ -e "$BUILD/lib/libtilejit_cpu.so" ] || exit 77
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
export TL_CACHE_DIR=$WORK/cache

PREFIX=$WORK/prefix
cmake --install "$BUILD" --prefix "$PREFIX" --component library >/dev/null
cmake --install "$BUILD" --prefix "$PREFIX" --component cpu >/dev/null

cd "$EXAMPLES"
LINK=(-L"$PREFIX/lib" -ltilejit -Wl,-rpath,"$PREFIX/lib" -pthread)
cc -std=c11 -I"$PREFIX/include" c/serve.c -o "$WORK/serve" "${LINK[@]}"
c++ -std=c++17 -I"$PREFIX/include" cpp/mini_server/*.cc -o "$WORK/mini_server" "${LINK[@]}" -ldl

"$WORK/serve" | tee "$WORK/out"
grep -q 'all right; hits 1, compiles 1, after sealing 0' "$WORK/out"

"$PREFIX/bin/tl" warm cpp/mini_server/plan.toml --target cpu
"$PREFIX/bin/tl" cache export "$WORK/server.pack" --target cpu
"$WORK/mini_server" --pack "$WORK/server.pack" --backend cpu --threads 2 --rounds 2 --tokens 9
"$WORK/serve" "$WORK/server.pack" | grep 'hits 1, compiles 0'
TILEJIT_LIBRARY=$PREFIX/lib PYTHONPATH=$EXAMPLES/../bindings/python \
  /usr/bin/python3 -c 'import tilejit; print(tilejit.Context().devices()[0].name)'
