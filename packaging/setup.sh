#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds the release preset and leaves the programs in build/release/bin. Safe to start again
# at any time: it does only what is left to do.
#   --no-build        only installs; for those who build other presets
#   SHARDSCOPE_DEPS   where LibTorch and CUDA go (default .deps; several clones can share one)
#   SHARDSCOPE_JOBS   compiler processes at once (default: what processor and memory allow)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly root=$PWD
deps=$(realpath -m "${SHARDSCOPE_DEPS:-$root/.deps}")
readonly deps
readonly python=${SHARDSCOPE_PYTHON:-python3}
readonly requirements=$root/packaging/requirements.txt
readonly neededGiB=12
[[ $# -eq 0 || ($# -eq 1 && $1 == --no-build) ]] || { echo "usage: packaging/setup.sh [--no-build]" >&2; exit 2; }

# Debian 12's names first; a name after | is the same thing on Ubuntu 24.04.
readonly packages=(
  build-essential cmake ninja-build ccache pkg-config python3 python3-venv ca-certificates
  qt6-base-dev "qt6-svg-dev|libqt6svg6-dev" qt6-wayland libgl-dev libqcustomplot-dev breeze-icon-theme fonts-dejavu-core
  libsqlite3-dev libsqlitecpp-dev nlohmann-json3-dev libtomlplusplus-dev libxxhash-dev libsentencepiece-dev zlib1g-dev
  libcli11-dev libfmt-dev libspdlog-dev libexpected-dev libgloo-dev liburing-dev libgtest-dev libgmock-dev
  xvfb xauth xdotool x11-utils imagemagick procps
)

stage() { printf '\n[%s/4] %s\n' "$1" "$2"; }
say() { printf '      %s\n' "$*"; }
die() { printf '\nsetup.sh: %s\n' "$*" >&2; exit 1; }

# ---- one at a time ---------------------------------------------------------------------------------------------------
# lock NAME FILE: waits for another setup.sh that works on the same folder. Kept until this script and its children end.
lock() {
  local fd
  mkdir -p "$(dirname "$2")" 2>/dev/null || die "can't make a folder in $1."
  [[ -w $(dirname "$2") ]] || die "can't write to $(dirname "$2")."
  exec {fd}>>"$2"
  flock -n "$fd" && return
  say "Another setup.sh is at work in $1; waiting for it."
  flock "$fd"
}

# ---- 1: system packages ----------------------------------------------------------------------------------------------
isInstalled() { [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

# The first of "a|b" that apt knows; the first where apt knows none (its message then says so).
nameHere() {
  local name
  for name in ${1//|/ }; do
    [[ -n $(apt-cache show --no-all-versions "$name" 2>/dev/null) ]] && { echo "$name"; return; }
  done
  echo "${1%%|*}"
}

missingPackages() {
  local entry name found
  for entry in "${packages[@]}"; do
    found=
    for name in ${entry//|/ }; do isInstalled "$name" && found=1; done
    [[ $found ]] || echo "$entry"
  done
}

readPackageLists() {
  local log
  log=$(mktemp)
  say "Reading the package lists"
  # apt-get update only warns where a server can't be reached.
  if ! apt-get -q -o DPkg::Lock::Timeout=600 update >"$log" 2>&1 || grep -qE '^W: (Failed to fetch|Some index)' "$log"; then
    cat "$log" >&2
    rm -f "$log"
    die "apt-get can't read its package lists; its messages are above. Is there a network?"
  fi
  rm -f "$log"
}

installPackages() {
  local missing names=() entry
  command -v dpkg-query >/dev/null \
    || die "this script knows Debian 12 and Ubuntu 24.04 alone. Elsewhere install what it lists as packages, then: cmake --preset release && cmake --build --preset release"
  mapfile -t missing < <(missingPackages)
  if ((${#missing[@]} == 0)); then say "All there."; return; fi
  ((EUID == 0)) && readPackageLists
  for entry in "${missing[@]}"; do names+=("$(nameHere "$entry")"); done
  if ((EUID != 0)); then
    printf '\n%d system packages are missing. Install them as root, then start this again:\n\n' "${#names[@]}" >&2
    printf '  sudo apt-get update && sudo apt-get install -y --no-install-recommends %s\n\n' "${names[*]}" >&2
    exit 1
  fi
  say "Installing ${#names[@]}: ${names[*]}"
  dpkg --configure -a >/dev/null 2>&1 || true # after an installation that was broken off
  DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 \
    install --no-install-recommends "${names[@]}" | grep --line-buffered -E '^(Need to get|Unpacking|Fetched|E:)' \
    | sed -u 's/^/      /' || die "apt-get failed; its messages are above. Once they are dealt with, start this again."
}

# ---- 2: LibTorch and CUDA --------------------------------------------------------------------------------------------
# The licence line is no part of it: it changes nothing that is installed.
wantedStamp() { { grep -v '^# SPDX-' "$requirements" | sha256sum; "$python" -c 'import sys; print(sys.version_info[:2])'; } | tr '\n' ' '; }

checkSpace() {
  local freeGiB
  freeGiB=$(($(df --output=avail -k "$deps" | tail -1) / 1024 / 1024))
  ((freeGiB >= neededGiB)) || die "$deps has $freeGiB GiB free, and LibTorch with CUDA takes up to $neededGiB while it is installed. Make room, or name another place in SHARDSCOPE_DEPS."
}

# One wheel at a time, so that a download that is broken off keeps what it has.
downloadWheels() {
  local wanted line log=$deps/download.log number=0
  mapfile -t wanted < <(grep -E '^[A-Za-z]' "$requirements")
  for line in "${wanted[@]}"; do
    number=$((number + 1))
    [[ -e $deps/wheels/.have-$line ]] && continue
    say "[$number/${#wanted[@]}] $line"
    if ! "$deps/venv/bin/python" -m pip download -q --no-deps --only-binary :all: -d "$deps/wheels" "$line" >"$log" 2>&1; then
      tail -5 "$log" >&2
      if grep -qE 'NewConnectionError|NameResolution|name resolution|Network is unreachable|timed out|ProxyError|SSLError' "$log"; then
        die "there is no network, or PyPI can't be reached. What was fetched is kept: start this again once it can."
      fi
      die "pip could not fetch $line (see $log). Start this again: it goes on from here."
    fi
    touch "$deps/wheels/.have-$line"
  done
}

# nvcc and CMake look for lib64 and for unversioned names, which the wheels lack.
linkCudaLibraries() {
  local lib folder plain
  for folder in "$deps"/venv/lib/python3*/site-packages/nvidia/cu13; do
    [[ -d $folder/lib ]] || die "the CUDA wheels are not where they should be ($folder). Remove $deps/venv and start again."
    ln -sfn lib "$folder/lib64"
    for lib in "$folder"/lib/lib*.so.*; do
      plain=${lib%%.so.*}.so
      [[ -e $plain ]] || ln -s "$(basename "$lib")" "$plain"
    done
  done
}

installLibTorch() {
  local stamp=$deps/venv/.shardscope-stamp
  if [[ -e $stamp && $(<"$stamp") == "$(wantedStamp)" ]]; then say "All there, in $deps."; return; fi
  say "Into $deps: about 2.5 GB to fetch, 5 GB on disk."
  checkSpace
  rm -rf "$deps/venv" # half an installation, or one of other versions
  "$python" -m venv "$deps/venv" || die "python3 can't make a virtual environment in $deps/venv."
  mkdir -p "$deps/wheels"
  downloadWheels
  say "Installing"
  "$deps/venv/bin/python" -m pip install -q --no-index --no-deps --find-links "$deps/wheels" -r "$requirements" \
    || die "pip could not install the wheels. Remove $deps/wheels and start this again."
  linkCudaLibraries
  wantedStamp >"$stamp"
  rm -rf "$deps/wheels" "$deps/download.log"
}

# ---- 3 and 4: build --------------------------------------------------------------------------------------------------
# A file with LibTorch's headers takes up to 2 GiB to compile.
jobs() {
  local cores memoryGiB
  cores=$(nproc)
  memoryGiB=$(($(awk '/^MemAvailable/ {print $2}' /proc/meminfo) / 1024 / 1024))
  local byMemory=$((memoryGiB / 2))
  ((byMemory >= 1)) || byMemory=1
  echo $((cores < byMemory ? cores : byMemory))
}

configure() {
  local fresh=() werror=OFF
  # A cache that was made for another place or other wheels is of no use.
  if [[ -e build/release/CMakeCache.txt && $(cat build/release/.made-for 2>/dev/null) != "$root $deps" ]]; then
    fresh=(--fresh)
  fi
  # Warnings are errors with the compiler that this is written with; a newer one knows new warnings.
  grep -q '^VERSION_CODENAME=bookworm' /etc/os-release && werror=ON
  cmake --preset release "${fresh[@]}" -DSHARDSCOPE_DEPS="$deps" -DSHARDSCOPE_WERROR=$werror >build/configure.log 2>&1 \
    || { cat build/configure.log >&2; die "CMake failed; its messages are above."; }
  echo "$root $deps" >build/release/.made-for
}

lock "$root" "$root/build/.setup.lock"
stage 1 "System packages"
installPackages
stage 2 "LibTorch 2.11 and CUDA 13.0"
if ! mkdir -p "$deps" 2>/dev/null || [[ ! -w $deps ]]; then
  die "can't write to $deps. Name another place in SHARDSCOPE_DEPS."
fi
# In a shell of its own: clones that share the folder need not wait for each other's builds.
(lock "$deps" "$deps/.setup.lock" && installLibTorch)
[[ ${1:-} != --no-build ]] || exit 0
stage 3 "Configuring"
configure
say "In build/release"
stage 4 "Building"
cmake --build --preset release -j "${SHARDSCOPE_JOBS:-$(jobs)}" \
  || die "the build failed; the compiler's messages are above. Start this again: it goes on from here."
say "Programs are in $root/build/release/bin"
