#!/usr/bin/env bash
# Proves that the commands install all they need: runs them as root in a fresh Debian root, from a
# fresh clone of the committed tree, with the CUDA toolkit hidden.
#
#   tools/test_bare_root.sh [-d DIR] [COMMAND]...
#
# Needs root and debootstrap. COMMANDs run in the clone; by default quickstart.sh twice and then
# tests/run.sh. DIR (/tmp/tilejit-bare) is made anew unless TL_KEEP_ROOT=1. TL_MIRROR and TL_SUITE
# choose another distribution. What this machine needs to reach its package sources (resolver, apt
# options, certificates, proxies) is copied in.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
DIR=/tmp/tilejit-bare
SUITE=${TL_SUITE:-bookworm}
MIRROR=${TL_MIRROR:-http://deb.debian.org/debian}

if [ "${1:-}" = -d ]; then
  DIR=$2
  shift 2
fi
[ $# -gt 0 ] || set -- examples/quickstart.sh examples/quickstart.sh tests/run.sh

unmount() {
  local point
  for point in dev/pts dev sys proc; do
    ! mountpoint -q "$DIR/$point" || umount "$DIR/$point"
  done
}

make_root() {
  [ -z "${TL_KEEP_ROOT:-}" ] || [ ! -e "$DIR/etc/debian_version" ] || return 0
  # Never delete through a mount.
  unmount
  rm -rf --one-file-system "$DIR"
  debootstrap --variant=minbase "$SUITE" "$DIR" "$MIRROR" >/dev/null
}

copy_network_setup() {
  cp -L /etc/resolv.conf /etc/hosts "$DIR/etc/"
  find /etc/apt/apt.conf.d -name '99*' -exec cp {} "$DIR/etc/apt/apt.conf.d/" \;
  [ ! -e /etc/ssl/certs/ca-certificates.crt ] ||
    install -D /etc/ssl/certs/ca-certificates.crt "$DIR/etc/tilejit-test/ca.crt"
}

enter() {
  local environment=(PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TL_HIDE_CUDA=1
    PIP_CERT=/etc/tilejit-test/ca.crt)
  local name
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY PIP_INDEX_URL; do
    [ -z "${!name:-}" ] || environment+=("$name=${!name}")
  done
  chroot "$DIR" env -i "${environment[@]}" bash -c "cd /tilejit && $1"
}

make_root
copy_network_setup
rm -rf "$DIR/tilejit"
git clone -q "$ROOT" "$DIR/tilejit"
trap unmount EXIT
mount -t proc proc "$DIR/proc"
mount --bind /sys "$DIR/sys"
mount --bind /dev "$DIR/dev"
mount --bind /dev/pts "$DIR/dev/pts"

for command in "$@"; do
  printf '\n=== bare %s: %s\n' "$SUITE" "$command"
  start=$SECONDS
  enter "$command"
  printf '=== %s: %d s\n' "$command" $((SECONDS - start))
done
