#!/usr/bin/env bash
# Every case of a table against the reference interpreter.
#
#   check_table.sh TL BACKEND [TARGET [TABLE [SHARD/SHARDS]]]     check_table.sh build/bin/tl emulate sm_80
#
# TABLE is checks.txt of this folder or another one there; of several shards, SHARD takes every SHARDS-th case.
# Prints the cases that fail, and how many there were.
set -uo pipefail
TL=$1 BACKEND=$2 TARGET=${3:-} TABLE=${4:-checks.txt} SHARD=${5:-0/1}
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export TL_CACHE_DIR=$(mktemp -d)
trap 'rm -rf "$TL_CACHE_DIR"' EXIT
count=0 failed=0 line=0
while read -r program args; do
  case $program in '' | '#'*) continue ;; esac
  # '!sm_75 program …': not for that target.
  if [[ $program == '!'* ]]; then
    [ "$program" != "!$TARGET" ] || continue
    read -r program args <<<"$args"
  fi
  line=$((line + 1))
  [ $((line % ${SHARD#*/})) = "${SHARD%/*}" ] || continue
  [ ! -e "$HERE/$program.tl" ] || program=$HERE/$program.tl
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
done <"$HERE/$TABLE"
echo "$count cases on $BACKEND $TARGET, $failed failed"
[ "$failed" = 0 ] && [ "$count" -gt 0 ]
