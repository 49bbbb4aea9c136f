#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Step time and peak memory against PyTorch's FSDP2 on one GPU: 1b3 in bf16, 8 × 2048 tokens a step; 1 rank, then 2 and 4
# ranks on the one card (correctness and memory; their speed is that of loopback sockets). Goals: ratios of at most 1.0.
set -euo pipefail
cd "$(dirname "$0")/../.."
run() { python3 tests/bench/peer_bench.py --device cuda --size 1b3 --batch 8 --seq 2048 --dtypes bf16 "$@"; }
run --ranks 1 --turns 2 --steps 12
# Less memory: recompute beside FSDP2's, then what it has no counterpart for beside our own first row.
run --ranks 1 --turns 2 --steps 12 --set memory.recompute=block --peer=--checkpoint
run --ranks 1 --turns 1 --steps 12 --set memory.recompute=selective --alone
run --ranks 1 --turns 1 --steps 12 --set memory.activation_offload=true --alone
run --ranks 1 --turns 1 --steps 12 --set memory.recompute=block --set memory.activation_offload=true --alone
# Offload: parameters, gradients and optimizer beside FSDP2's CPU offload (goal: at most 0.6 of its time without clipping,
# 0.7 with); then the places it has no counterpart for. Without clipping the update may begin behind backward only where
# no NaN is waited for.
all=(--set offload.parameters=cpu --set offload.gradients=cpu --set offload.optimizer=cpu)
run --ranks 1 --turns 2 --steps 8 "${all[@]}" --set train.on_nan=off --peer=--offload
run --ranks 1 --turns 1 --steps 8 "${all[@]}" --set optimizer.clip_norm=1 --peer=--offload
run --ranks 1 --turns 1 --steps 8 --set offload.optimizer=cpu --set train.on_nan=off --alone
run --ranks 1 --turns 1 --steps 8 --set offload.optimizer=cpu --set optimizer.clip_norm=1 --alone
run --ranks 1 --turns 1 --steps 4 --warmup 1 --set offload.optimizer=nvme --alone
run --ranks 1 --turns 1 --steps 4 --warmup 1 --set offload.parameters=nvme --set offload.gradients=cpu \
    --set offload.optimizer=nvme --alone
run --ranks 2 4 --turns 1 --steps 3 --warmup 1
