#!/usr/bin/env bash
# Installs what the build needs and is missing: distribution packages, a position-independent
# Abseil, and, where no CUDA toolkit is to be found, NVRTC from its wheel. Cheap when nothing is
# missing, so every command can call it.
#
#   tools/deps.sh [build] [test] [all] [nvrtc] [absl[:VARIANT]]      (default: build absl nvrtc)
#
# VARIANT: plain (default), asan, tsan. TL_DEPS_DIR (default .deps/) keeps what is built or
# downloaded; TL_NO_INSTALL=1 never calls the package manager, TL_HIDE_CUDA=1 acts as if there were
# no CUDA toolkit.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
DEPS=${TL_DEPS_DIR:-$ROOT/.deps}

say() { printf 'deps: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# --- distribution packages ------------------------------------------------------------------------

# Debian 12 and Ubuntu 24.04 use the same names for all of these.
BUILD_PACKAGES=(
  g++ make cmake ninja-build ccache pkg-config
  llvm-19-dev zlib1g-dev libzstd-dev libxml2-dev libffi-dev
  libsqlite3-dev libxxhash-dev libdlpack-dev libcli11-dev nlohmann-json3-dev libtomlplusplus-dev
  libgtest-dev libgmock-dev
  # fetching and unpacking the Abseil source package; the wheel of NVRTC
  dpkg-dev patch xz-utils ca-certificates python3 python3-venv
)
# What only the tests, the benchmarks and the gates of --all use. clang also compiles the generated
# device code for the CPU. libamdhip64-5 is HIPRTC: with the libraries behind it 41 MB to download,
# 190 MB installed. cargo and numpy are for the bindings.
TEST_PACKAGES=(clang-19 lld-19 libclang-rt-19-dev libamdhip64-5 libbenchmark-dev binutils rustc cargo
  python3-numpy)
ALL_PACKAGES=(clang-format-19 clang-tidy-19 abigail-tools)

missing_packages() {
  local p
  for p in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null || true)" = installed ] || echo "$p"
  done
}

install_packages() {
  local missing
  # One dpkg-query per package costs 10 ms each; the stamp makes the usual case free.
  local stamp
  stamp="$DEPS/stamp-$(printf '%s\n' "$@" /var/lib/dpkg/status "$(stat -c %Y /var/lib/dpkg/status)" |
    sha256sum | cut -c1-16)"
  [ -e "$stamp" ] && return
  mapfile -t missing < <(missing_packages "$@")
  if [ ${#missing[@]} -gt 0 ]; then
    [ -z "${TL_NO_INSTALL:-}" ] || die "missing packages: ${missing[*]}"
    say "installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    as_root apt-get -qq update
    as_root apt-get -qq -y --no-install-recommends install "${missing[@]}" >/dev/null
  fi
  mkdir -p "$DEPS"
  touch "$DEPS/stamp-$(printf '%s\n' "$@" /var/lib/dpkg/status "$(stat -c %Y /var/lib/dpkg/status)" |
    sha256sum | cut -c1-16)"
}

# --- Abseil ---------------------------------------------------------------------------------------

# The distribution's archives are not position-independent and cannot be linked into a shared
# library, so its source package is built once more. The package lists of the private apt
# configuration live below $DEPS: the system's own sources stay as they are.
private_apt() {
  local dir=$DEPS/apt
  apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$dir/sources.d" \
    -o Dir::State::lists="$dir/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
    -o APT::Sandbox::User=root "$@"
}

write_source_entries() {
  local codename keyring
  codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
  keyring=/usr/share/keyrings/$(. /etc/os-release && echo "$ID")-archive-keyring.gpg
  [ -e "$keyring" ] || keyring=
  mkdir -p "$DEPS/apt/sources.d" "$DEPS/apt/lists/partial"
  # The system's binary sources of this release, whatever format they are written in, as deb-src.
  apt-get indextargets 'Created-By: Packages' \
    --format '$(REPO_URI)|$(RELEASE)|$(COMPONENT)' |
    awk -F'|' -v c="$codename" -v k="$keyring" '
      ($2 == c || $2 == c "-updates" || $2 == c "-security") && ($3 == "main" || $3 == "universe") {
        printf "deb-src %s%s %s %s\n", (k ? "[signed-by=" k "] " : ""), $1, $2, $3 }' |
    sort -u >"$DEPS/apt/sources.d/source.list"
  [ -s "$DEPS/apt/sources.d/source.list" ] || die "no package source for $codename is configured"
}

fetch_abseil() {
  [ -e "$DEPS/abseil-src/CMakeLists.txt" ] && return
  say "fetching the Abseil source package"
  write_source_entries
  private_apt update
  rm -rf "$DEPS/abseil-dl" "$DEPS/abseil-src"
  mkdir -p "$DEPS/abseil-dl"
  (cd "$DEPS/abseil-dl" && private_apt source --download-only abseil >/dev/null &&
    dpkg-source --no-check -x ./*.dsc "$DEPS/abseil-src" >/dev/null)
  # absl::string_view and friends become the std ones; a namespace of our own makes any mixture with
  # the distribution's archives an error at link time.
  sed -i -E -e 's/^(#define ABSL_OPTION_USE_STD_[A-Z_]+) .*/\1 1/' \
    -e 's/^(#define ABSL_OPTION_INLINE_NAMESPACE_NAME) .*/\1 tilejit/' \
    "$DEPS/abseil-src/absl/base/options.h"
}

absl_flags() {
  case $1 in
    plain) echo "-fvisibility=hidden" ;;
    # Uninstrumented Mutexes are false positives under TSan; inline code that knows ASan must agree
    # with the archives.
    asan) echo "-fvisibility=hidden -fsanitize=address -fno-omit-frame-pointer" ;;
    tsan) echo "-fvisibility=hidden -fsanitize=thread -fno-omit-frame-pointer" ;;
    *) die "unknown Abseil variant $1" ;;
  esac
}

# The build ends in a versioned prefix, then the link that CMake reads is moved: an interrupted
# build is never taken for a finished one.
build_abseil() {
  local variant=$1 flags key prefix build
  flags=$(absl_flags "$variant")
  key=$({ echo "$flags v2"; g++ -dumpfullversion; } | sha256sum | cut -c1-12)
  prefix=$DEPS/absl-$variant-$key
  if [ ! -e "$prefix/done" ]; then
    fetch_abseil
    say "building Abseil ($variant)"
    build=$DEPS/absl-build-$variant
    rm -rf "$build" "$prefix"
    local launcher=()
    ! command -v ccache >/dev/null || launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    cmake -S "$DEPS/abseil-src" -B "$build" -G Ninja "${launcher[@]}" \
      -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=g++ -DCMAKE_CXX_STANDARD=20 \
      -DABSL_PROPAGATE_CXX_STD=ON -DBUILD_TESTING=OFF -DBUILD_SHARED_LIBS=OFF \
      -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_CXX_FLAGS="$flags" \
      -DCMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG" -DCMAKE_INSTALL_LIBDIR=lib \
      -DCMAKE_INSTALL_PREFIX="$prefix" >"$DEPS/absl-$variant.log"
    ninja -C "$build" install >>"$DEPS/absl-$variant.log" ||
      { tail -40 "$DEPS/absl-$variant.log" >&2; die "Abseil does not build"; }
    rm -rf "$build"
    touch "$prefix/done"
  fi
  [ "$(readlink "$DEPS/absl-$variant" || true)" = "$(basename "$prefix")" ] ||
    ln -sfn "$(basename "$prefix")" "$DEPS/absl-$variant"
}

# --- NVRTC ----------------------------------------------------------------------------------------

have_cuda_toolkit() {
  [ -z "${TL_HIDE_CUDA:-}" ] || return 1
  local dir
  for dir in "${TL_CUDA_PATH:-}" "${CUDA_PATH:-}" "${CUDA_HOME:-}" /usr/local/cuda*; do
    [ -n "$dir" ] || continue
    ! compgen -G "$dir/lib64/libnvrtc.so*" >/dev/null || return 0
  done
  return 1
}

# The wheels are unpacked beside the build, not into the system's Python. Without network the CUDA
# back end is merely unavailable, which is no failure of the build.
install_nvrtc() {
  local site=$DEPS/wheels
  ! have_cuda_toolkit || return 0
  [ ! -e "$site/done" ] || return 0
  [ -z "${TL_NO_INSTALL:-}" ] || { say "NVRTC is missing"; return 0; }
  say "installing the NVRTC wheel"
  rm -rf "$DEPS/venv" "$site"
  if python3 -m venv "$DEPS/venv" &&
    "$DEPS/venv/bin/python" -m pip -q --disable-pip-version-check install --no-deps \
      --target "$site" 'nvidia-cuda-nvrtc==13.*' 'nvidia-cuda-nvdisasm==13.*'; then
    touch "$site/done"
  else
    say "the NVRTC wheel could not be installed; GPU compilation will be unavailable"
  fi
  rm -rf "$DEPS/venv"
}

main() {
  [ $# -gt 0 ] || set -- build absl nvrtc
  local what packages=()
  for what in "$@"; do
    case $what in
      build) packages+=("${BUILD_PACKAGES[@]}") ;;
      test) packages+=("${TEST_PACKAGES[@]}") ;;
      all) packages+=("${ALL_PACKAGES[@]}") ;;
      absl | absl:* | nvrtc) ;;
      *) die "unknown argument $what" ;;
    esac
  done
  [ ${#packages[@]} -eq 0 ] || install_packages "${packages[@]}"
  for what in "$@"; do
    case $what in
      absl) build_abseil plain ;;
      absl:*) build_abseil "${what#absl:}" ;;
      nvrtc) install_nvrtc ;;
    esac
  done
}

main "$@"
