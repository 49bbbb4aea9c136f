#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what tests compare with and no program needs: Hugging Face's transformers, pinned, beside LibTorch's wheels. Tests
# that want it are skipped with a reason where it isn't there.
#   SHARDSCOPE_DEPS   where LibTorch is (default .deps)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
deps=$(realpath -m "${SHARDSCOPE_DEPS:-$PWD/.deps}")
readonly deps target=$deps/test-wheels requirements=$PWD/packaging/requirements_test.txt python=$deps/venv/bin/python

say() { printf '      %s\n' "$*"; }
[[ -x $python ]] || { say "There is no LibTorch in $deps; start packaging/setup.sh first."; exit 1; }

# As setup.sh's.
stamp() { { grep -v '^# SPDX-' "$requirements" | sha256sum; "$python" -c 'import sys; print(sys.version_info[:2])'; } | tr '\n' ' '; }
if [[ -e $target/.stamp && $(<"$target/.stamp") == "$(stamp)" ]]; then say "Test wheels: all there."; exit 0; fi

if [[ ! -w $deps ]]; then say "$deps can't be written to, so the test wheels stay out: comparisons with transformers are skipped."; exit 0; fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
say "Test wheels into $target: about 25 MB to fetch, 180 MB on disk."
rm -rf "$target" "$target.part"
# --no-deps: numpy, filelock, fsspec and typing_extensions are LibTorch's already, and everything else is in the list.
if ! "$python" -m pip install -q --no-deps --only-binary :all: --target "$target.part" -r "$requirements" 2>"$log"; then
  tail -3 "$log" >&2
  rm -rf "$target.part"
  say "They could not be fetched (is there a network?). Comparisons with transformers are skipped."
  exit 0
fi
stamp >"$target.part/.stamp"
mv "$target.part" "$target"
