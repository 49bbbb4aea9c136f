#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Step time and peak memory against PyTorch's FSDP2 on one GPU: 1b3, 8 × 2048 tokens a step, in turns. A name is a group of
# rows; without one all of them in this order:
#   base        bf16 by strategy: full, grad_op, none (beside autocast without sharding), and full with clipping
#   recompute   block beside FSDP2's; selective and activation offload, which it has no counterpart for
#   offload     everything on the CPU beside CPUOffloadPolicy, without and with clipping; the optimizer alone
#   nvme        the optimizer, then everything, in a file, after the rates of the drive itself
#   fp16        with its scaler, without and with clipping
#   ranks       ranks2 and ranks4: strategies at 2 and 4 ranks on the one card. Correctness and memory: their speed is
#               that of loopback sockets
#   tests/bench/gpu_peer.sh [GROUP]...          nvme is in TMPDIR
# Goals: ratios of at most 1.0, of ranks2 and ranks4 beside PyTorch as it is (peer_bench.py); offload at most 0.6 of FSDP2's time without clipping, 0.7 with. A row that fails does not
# keep the others from running: exits with 1 after all of them.
set -euo pipefail
cd "$(dirname "$0")/../.."
failed=0
bench() {
    python3 tests/bench/peer_bench.py --device cuda --batch 8 --seq 2048 "$@" || { echo "failed: $*" >&2; failed=1; }
}
run() { bench --size 1b3 --dtypes bf16 "$@"; }
clipped=(--set optimizer.clip_norm=1 --peer=--clip=1)

base() {
    for strategy in full grad_op none; do
        run --ranks 1 --turns 2 --steps 12 --strategy "$strategy"
    done
    run --ranks 1 --turns 2 --steps 12 "${clipped[@]}"
}
recompute() {
    run --ranks 1 --turns 2 --steps 12 --set memory.recompute=block --peer=--checkpoint
    run --ranks 1 --turns 1 --steps 12 --set memory.recompute=selective --alone
    run --ranks 1 --turns 1 --steps 12 --set memory.activation_offload=true --alone
    run --ranks 1 --turns 1 --steps 12 --set memory.recompute=block --set memory.activation_offload=true --alone
}
# Without clipping the update may begin behind backward only where no NaN is waited for.
offload() {
    local all=(--set offload.parameters=cpu --set offload.gradients=cpu --set offload.optimizer=cpu)
    run --ranks 1 --turns 2 --steps 8 "${all[@]}" --set train.on_nan=off --peer=--offload
    run --ranks 1 --turns 1 --steps 8 "${all[@]}" "${clipped[@]}" --peer=--offload
    run --ranks 1 --turns 1 --steps 8 --set offload.optimizer=cpu --set train.on_nan=off --alone
    run --ranks 1 --turns 1 --steps 8 --set offload.optimizer=cpu --set optimizer.clip_norm=1 --alone
}
# An update of 1.364 G parameters reads and writes two fp32 moments; with them the masters.
nvme() {
    python3 tests/bench/disk_rate.py "${TMPDIR:-/tmp}" --moved 10.16 || true
    run --ranks 1 --turns 1 --steps 4 --warmup 1 --set offload.optimizer=nvme --alone
    python3 tests/bench/disk_rate.py "${TMPDIR:-/tmp}" --moved 15.24 || true
    run --ranks 1 --turns 1 --steps 4 --warmup 1 --set offload.parameters=nvme --set offload.gradients=cpu \
        --set offload.optimizer=nvme --alone
}
fp16() {
    bench --size 1b3 --dtypes fp16 --ranks 1 --turns 2 --steps 12
    bench --size 1b3 --dtypes fp16 --ranks 1 --turns 1 --steps 12 "${clipped[@]}"
}
ranks2() {
    for strategy in full grad_op none; do
        run --ranks 2 --turns 1 --steps 3 --warmup 1 --strategy "$strategy"
    done
}
# Four replicas of 1b3 under DDP are more than a card has. Two groups of two: beside FSDP2's two-dimensional mesh.
ranks4() {
    for strategy in full grad_op; do
        run --ranks 4 --turns 1 --steps 3 --warmup 1 --strategy "$strategy"
    done
    bench --size 350m --dtypes bf16 --ranks 4 --turns 1 --steps 3 --warmup 1 --strategy none
    run --ranks 4 --turns 1 --steps 3 --warmup 1 --strategy hybrid --shard-group 2
}
ranks() {
    ranks2
    ranks4
}

groups=" base recompute offload nvme fp16 ranks ranks2 ranks4 "
for group in "$@"; do
    [[ $groups == *" $group "* ]] || { echo "there is no group $group of rows: one or some of$groups" >&2; exit 2; }
done
for group in "${@:-base recompute offload nvme fp16 ranks}"; do
    for one in $group; do "$one"; done
done
exit $failed
