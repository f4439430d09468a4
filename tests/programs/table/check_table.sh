#!/usr/bin/env bash
# Every case of checks.txt against the reference interpreter.
#
#   check_table.sh TL BACKEND [TARGET]     check_table.sh build/bin/tl emulate sm_80
#
# Prints the cases that fail, and how many there were.
set -uo pipefail
TL=$1 BACKEND=$2 TARGET=${3:-}
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export TL_CACHE_DIR=$(mktemp -d)
trap 'rm -rf "$TL_CACHE_DIR"' EXIT
count=0 failed=0
while read -r program args; do
  case $program in '' | '#'*) continue ;; esac
  # '!sm_75 program …': not for that target.
  if [[ $program == '!'* ]]; then
    [ "$program" != "!$TARGET" ] || continue
    read -r program args <<<"$args"
  fi
  for file in "$HERE/$program.tl" "$HERE/../$program.tl"; do
    [ ! -e "$file" ] || program=$file
  done
  count=$((count + 1))
  # shellcheck disable=SC2086
  if ! out=$("$TL" check "$program" $args --backend "$BACKEND" ${TARGET:+--target "$TARGET"} 2>&1); then
    # What a target lacks memory for is no fault.
    if grep -q RESOURCE_EXHAUSTED <<<"$out" && [ "${TL_TABLE_ALLOW_EXHAUSTED:-1}" = 1 ]; then
      echo "does not fit: $(basename "$program") $args"
      continue
    fi
    failed=$((failed + 1))
    printf 'FAILED: %s %s\n%s\n' "$program" "$args" "$out"
  fi
done <"$HERE/checks.txt"
echo "$count cases on $BACKEND $TARGET, $failed failed"
[ "$failed" = 0 ] && [ "$count" -gt 0 ]
