#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Step time against PyTorch's FSDP2 on Gloo: 2 ranks of one thread, 15m, 4 × 256 tokens a rank, bf16 and fp32, in turns.
# The goal is a ratio of at most 1.0. Quiet machines only: it measures two busy cores.  More options: peer_bench.py --help
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS=1
exec python3 tests/bench/peer_bench.py --device cpu --size 15m --ranks 2 --batch 4 --seq 256 "$@"
