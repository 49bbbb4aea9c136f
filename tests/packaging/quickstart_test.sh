#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# quickstart_test.sh REPOSITORY: packaging/quickstart.sh without a display, whose demo run is ended by Ctrl+C, or does
# not start.
source "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
readonly clone=$folder/clone
mkdir -p "$clone/packaging"
cp "$1/packaging/quickstart.sh" "$clone/packaging"
standIn "$clone/packaging/setup.sh" <<<':'
standIn "$clone/build/release/bin/shardscope-cli" <<'BODY'
run=${*: -1}
[[ ${STUB_RUN:-} == refused ]] && { echo "shardscope-cli: no" >&2; exit 2; }
mkdir -p "$run"
echo '{}' >"$run/state.json"
exit "${STUB_RUN:-0}"
BODY
standIn "$clone/build/release/bin/shardscope" <<<'touch "${*: -1}"'
unset DISPLAY WAYLAND_DISPLAY XDG_DATA_HOME
readonly runs=$HOME/.local/share/shardscope/runs

for code in 0 130; do
  STUB_RUN=$code runs 0 "$clone/packaging/quickstart.sh"
  says "Pictures of the window"
done
for picture in demo/live demo/timeline demo/memory demo-2/live demo-2/timeline demo-2/memory; do
  [[ -e $runs/$picture.png ]] || failed "there is no picture $picture"
done
STUB_RUN=refused runs 2 "$clone/packaging/quickstart.sh"
says "shardscope-cli: no"
says "the demo run did not start"
saysNot "Pictures"
echo "quickstart.sh: all as it should be"
