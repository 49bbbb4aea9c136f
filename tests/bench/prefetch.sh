#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What gathering ahead is worth: communication that nothing hides, and step times, with gathers ahead in forward and
# backward (as runs start) and without, in turns; medians over the steps of all rounds. 2 CPU ranks of one thread. Quiet
# machines only. Exits with 1 where gathers ahead hide nothing; its last figures: tests/bench/RESULTS.md.
#   tests/bench/prefetch.sh [build folder]      (build/release by default)   ROUNDS=3 STEPS=30 PRESET=15m SEQUENCE=256
set -euo pipefail
cd "$(dirname "$0")/../.."
cli=$(realpath "${1:-build/release}")/bin/shardscope-cli
[ -x "$cli" ] || { echo "There is no $cli: build it, or name a build folder." >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1 XDG_DATA_HOME="$work/data" XDG_RUNTIME_DIR="$work" XDG_CACHE_HOME="$work/cache"
seq 1 200000 > "$work/text.txt"
run() { # ahead|off, number of the round
    local name="$1-$2" more=()
    [ "$1" = off ] && more=(--set parallel.prefetch=off --set parallel.forward_prefetch=false)
    "$cli" run --preset "${PRESET:-15m}" --data "$work/text.txt" --ranks 2 --device cpu --steps "${STEPS:-30}" \
        --set "train.sequence_length=${SEQUENCE:-256}" --set train.micro_batch=4 --set "run.name=$name" "${more[@]}" \
        > "$work/$name.log" 2>&1 || { cat "$work/$name.log" >&2; exit 1; }
    # The first steps make their buffers.
    "$cli" sql "$name" "select avg(exposed_communication_ns), max(end_ns - start_ns) from step where number > 5
        group by number" --format json > "$work/$name.json"
}
for round in $(seq 1 "${ROUNDS:-3}"); do
    run ahead "$round"
    run off "$round"
done
python3 - "$work" << 'PYTHON'
import glob, json, statistics, sys

exposed = {}
print(f"{'gathers':10} {'exposed communication':>22} {'step':>12}   medians of all steps")
for mode in ("ahead", "off"):
    rows = [row for path in glob.glob(f"{sys.argv[1]}/{mode}-*.json") for row in json.load(open(path))["rows"]]
    exposed[mode] = statistics.median(row[0] for row in rows)
    step = statistics.median(row[1] for row in rows)
    print(f"{mode:10} {exposed[mode] / 1e6:19.2f} ms {step / 1e6:9.2f} ms   ({len(rows)} steps)")
ratio = exposed["ahead"] / exposed["off"]
print(f"exposed with gathers ahead / without: {ratio:.3f}")
sys.exit(ratio >= 1)
PYTHON
