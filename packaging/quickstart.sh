#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up, builds, starts the demo run and opens its window. Without a display the run goes on in this terminal, and
# pictures of the window's pages are written at its end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly bin=$PWD/build/release/bin
packaging/setup.sh

runs=${XDG_DATA_HOME:-$HOME/.local/share}/shardscope/runs
run=$runs/demo
for ((n = 2; ; ++n)); do
  [[ -e $run ]] || break
  run=$runs/demo-$n
done
mkdir -p "$runs"

if [[ -z ${DISPLAY:-}${WAYLAND_DISPLAY:-} ]]; then
  printf '\nThere is no display, so the demo run goes on in this terminal (Ctrl+C ends it after its step).\n\n'
  # 130: Ctrl+C. A run that was ended early can be looked at as any other.
  code=0
  "$bin/shardscope-cli" run packaging/demo.toml --out "$run" || code=$?
  if [[ ! -e $run/state.json ]]; then
    printf 'quickstart.sh: the demo run did not start.\n' >&2
    exit "$((code == 0 ? 1 : code))"
  fi
  printf '\nPictures of the window:\n'
  for page in live timeline memory; do
    QT_QPA_PLATFORM=offscreen "$bin/shardscope" "$run" --render $page --out "$run/$page.png"
    printf '  %s\n' "$run/$page.png"
  done
  printf '\nThe run is in %s. Look into it: %s analyze "%s"\n' "$run" "$bin/shardscope-cli" "$(basename "$run")"
  exit
fi

printf '\nThe demo run is in %s. It goes on when the window is closed.\n' "$run"
log=$(mktemp)
# In a session of its own: neither the window's end nor the terminal's ends the run.
setsid "$bin/shardscope-cli" run packaging/demo.toml --out "$run" >"$log" 2>&1 </dev/null &
readonly supervisor=$!
for ((i = 0; i < 300; ++i)); do
  [[ -e $run/state.json ]] && break
  kill -0 "$supervisor" 2>/dev/null || break
  sleep 0.1
done
if [[ ! -e $run/state.json ]]; then
  cat "$log" >&2
  printf 'quickstart.sh: the demo run did not start.\n' >&2
  exit 1
fi
rm -f "$log" # the supervisor keeps it open; the run's own logs are in its folder
exec "$bin/shardscope" "$run"
