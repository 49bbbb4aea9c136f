#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kill -9 of a whole training job at random moments, many times: the newest whole checkpoint always loads and the run goes
# on from it. The short form of this is in tests/files/killed_writer_test.cpp.
#   tests/train/kill_checkpoints.sh BIN_FOLDER [KILLS=50]
set -eu
bin=$(realpath "$1")
kills=${2:-50}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_DATA_HOME="$work/data" XDG_RUNTIME_DIR="$work" XDG_CACHE_HOME="$work/cache"
seq 1 20000 > "$work/text.txt"
cli="$bin/shardscope-cli"
ended=0
loaded=0
format=sharded
"$cli" run --preset tiny --data "$work/text.txt" --ranks 2 --device cpu --steps 1 --record off --set run.name=job \
    --set train.sequence_length=32 --set train.micro_batch=1 --set checkpoint.every=1 > "$work/log" 2>&1
for kill in $(seq 1 "$kills"); do
    before=$(ls "$XDG_DATA_HOME/shardscope/runs/job/checkpoints" | sort | tail -1)
    [ "$format" = sharded ] && format=full || format=sharded
    ranks=$((kill % 3 + 1))
    setsid "$cli" run --resume job --steps 1000000 --ranks $ranks --set train.global_batch=auto \
        --set checkpoint.asynchronous=$([ $((kill % 4)) -lt 2 ] && echo true || echo false) \
        --set checkpoint.format=$format > "$work/log" 2>&1 &
    job=$!
    # From the moment that it trains, up to two seconds: some tens of checkpoints.
    for _ in $(seq 1 600); do
        grep -q "step " "$work/log" && break
        kill -0 $job 2> /dev/null || { echo "attempt $kill did not begin:"; cat "$work/log"; exit 1; }
        sleep 0.1
    done
    sleep "$(awk -v seed="$kill" 'BEGIN { srand(seed * 7919); print rand() * 2 }')"
    pkill -9 -s "$job" 2> /dev/null || true
    wait $job 2> /dev/null || true
    after=$(ls "$XDG_DATA_HOME/shardscope/runs/job/checkpoints" | sort | tail -1)
    loaded=$((loaded + 1))
    [ "$after" != "$before" ] && ended=$((ended + 1))
done
"$cli" run --resume job --steps 1000000 --ranks 1 > "$work/log" 2>&1 &
job=$!
sleep 5
kill -INT $job
wait $job || true
grep -q "step " "$work/log" || { echo "the last attempt did not go on:"; cat "$work/log"; exit 1; }
echo "$loaded kills, each gone on from; $ended of them after a new checkpoint"
