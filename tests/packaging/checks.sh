# SPDX-License-Identifier: Apache-2.0
# For tests of scripts. A folder of their own, programs that stand in for others, and what must hold.
set -euo pipefail
folder=$(mktemp -d "${TMPDIR:-/tmp}/shardscope packaging XXXXXX")
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin" "$folder/home"
export HOME=$folder/home

# standIn PATH < body: a program made of this text.
standIn() {
  mkdir -p "$(dirname "$1")"
  { echo '#!/usr/bin/env bash'; cat; } >"$1"
  chmod +x "$1"
}

failed() {
  printf 'FAILED: %s\n--- output\n%s\n' "$1" "$output" >&2
  exit 1
}

# runs CODE COMMAND...: the command ends with this exit code; $output is what it said.
runs() {
  local wanted=$1 code=0
  shift
  output=$("$@" 2>&1) || code=$?
  ((code == wanted)) || failed "exit code $code instead of $wanted: $*"
}
says() { [[ $output == *"$1"* ]] || failed "it does not say: $1"; }
saysNot() { [[ $output != *"$1"* ]] || failed "it says: $1"; }
