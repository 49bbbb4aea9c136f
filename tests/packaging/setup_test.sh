#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# setup_test.sh REPOSITORY: packaging/setup.sh where apt-get and pip find no network, and where it is killed in the
# middle. Nothing is fetched or installed.
source "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
readonly clone=$folder/clone
mkdir -p "$clone/packaging"
cp "$1/packaging/setup.sh" "$1/packaging/requirements.txt" "$clone/packaging"
readonly wheels=$(grep -cE '^[A-Za-z]' "$clone/packaging/requirements.txt")

standIn "$folder/bin/dpkg-query" <<<'[[ ${STUB_PACKAGES:-} == missing ]] || printf installed'
standIn "$folder/bin/apt-cache" <<<'echo "Package: ${*: -1}"'
# As the real one does without a network: it warns, and succeeds.
standIn "$folder/bin/apt-get" <<<'echo "W: Failed to fetch http://deb.debian.org/debian/dists/bookworm/InRelease"'
standIn "$folder/bin/df" <<<'printf " Avail\n104857600\n"'
# Its pip answers as STUB_PIP says, and notes in $folder/fetched what was fetched.
standIn "$folder/bin/pip" <<'BODY'
case "$*" in
  *" download "*)
    case ${STUB_PIP:-} in
      offline) echo "NewConnectionError: Failed to establish a new connection: [Errno 101] Network is unreachable" >&2; exit 1 ;;
      broken) echo "ERROR: No matching distribution found" >&2; exit 1 ;;
    esac
    count=$(($(wc -l <"$STUB_FETCHED") + 1))
    [[ ${STUB_KILLED_AT:-} != "$count" ]] || kill -KILL 0 # the script, its shells and this: as a power cut
    echo "${*: -1}" >>"$STUB_FETCHED" ;;
  *" install "*)
    site=$(dirname "$0")/../lib/python3.11/site-packages/nvidia/cu13/lib
    mkdir -p "$site"
    touch "$site/libcudart.so.13" ;;
esac
BODY
standIn "$folder/bin/python-stub" <<'BODY'
if [[ $1 == -m && $2 == venv ]]; then
  mkdir -p "$3/bin"
  cp "$(dirname "$0")/pip" "$3/bin/python"
else
  exec python3 "$@"
fi
BODY
export PATH=$folder/bin:$PATH SHARDSCOPE_PYTHON=$folder/bin/python-stub SHARDSCOPE_DEPS=$folder/deps
export STUB_FETCHED=$folder/fetched
: >"$STUB_FETCHED"
setup() { runs "$1" setsid --wait "$clone/packaging/setup.sh" --no-build; }

# System packages.
if ((EUID == 0)); then
  STUB_PACKAGES=missing setup 1
  says "W: Failed to fetch"
  says "apt-get can't read its package lists"
  says "Is there a network?"
else
  STUB_PACKAGES=missing setup 1
  says "sudo apt-get update && sudo apt-get install -y --no-install-recommends build-essential"
fi
[[ ! -e $SHARDSCOPE_DEPS/venv ]] || failed "wheels come after the packages"

# Wheels, without a network and without an answer.
STUB_PIP=offline setup 1
says "there is no network, or PyPI can't be reached"
says "start this again"
STUB_PIP=broken setup 1
says "No matching distribution found"
says "Start this again: it goes on from here."
saysNot "there is no network"

# Killed while it fetches the third wheel: it goes on there.
STUB_KILLED_AT=3 setup 137
[[ $(wc -l <"$STUB_FETCHED") == 2 ]] || failed "it was not killed in the middle"
[[ ! -e $SHARDSCOPE_DEPS/venv/.shardscope-stamp ]] || failed "half an installation is taken for a whole one"
setup 0
saysNot "[2/$wheels]"
says "[3/$wheels]"
[[ $(sort "$STUB_FETCHED" | uniq -d) == "" ]] || failed "a wheel was fetched twice"
[[ $(wc -l <"$STUB_FETCHED") == "$wheels" ]] || failed "not all wheels were fetched"
[[ -L $SHARDSCOPE_DEPS/venv/lib/python3.11/site-packages/nvidia/cu13/lib64 ]] || failed "CUDA's libraries are not linked"

# And then there is nothing left to do, with or without a network.
STUB_PIP=offline setup 0
says "All there, in $SHARDSCOPE_DEPS."
echo "setup.sh: all as it should be"
