#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Step time against PyTorch's FSDP2 on Gloo: 2 ranks of one thread, 15m, 4 × 256 tokens a rank, bf16 and fp32, in turns.
# Exits with 1 where a ratio is over the goal of 0.7. PyTorch's fp32 products are oneDNN's as ours are, which it has to be
# asked for; how long it takes as it comes is shown too. Quiet machines only: it measures two busy cores. Its last figures:
# tests/bench/RESULTS.md.  More options: peer_bench.py --help
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS=1
exec python3 tests/bench/peer_bench.py --device cpu --size 15m --ranks 2 --batch 4 --seq 256 --fail-above 0.7 "$@"
