#!/usr/bin/env bash
# The Python package: its tests and its example.
#   python_test.sh BUILD_DIR
set -euo pipefail
BUILD=$1
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
# Debian's, which has Debian's NumPy; else whichever has one.
for PYTHON in /usr/bin/python3 python3 ''; do
  [ -n "$PYTHON" ] || {
    echo "skipped: no Python with NumPy; 'apt-get install python3-numpy' brings it"
    exit 77
  }
  ! "$PYTHON" -c 'import numpy' 2>/dev/null || break
done
export PYTHONPATH=$ROOT/bindings/python TILEJIT_LIBRARY=$BUILD/lib PYTHONDONTWRITEBYTECODE=1
"$PYTHON" -W error -m unittest discover -s "$ROOT/tests/bindings/python"

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
BACKEND=reference
! "$BUILD/bin/tl" devices | grep -q ' cpu ' || BACKEND=cpu
"$PYTHON" "$ROOT/examples/python/port.py" --backend $BACKEND --emit "$WORK" | tee "$WORK/out"
[ "$(grep -c pass "$WORK/out")" = 6 ]
"$PYTHON" "$ROOT/examples/python/serve.py" | grep 'all right.* after sealing 0'
# What they became is right on a GPU too, as far as that shows without one.
for program in "$WORK"/*.tl; do
  TL_EMULATE=1 "$BUILD/bin/tl" check "$program" --backend emulate --target sm_80
done
