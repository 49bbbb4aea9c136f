#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs on a machine with an NVIDIA GPU: every test labelled gpu, then the benchmarks against PyTorch, then a short table.
# Works from what tests/gpu/pack.sh packed (.carry/) or, with BUILD=folder, from a build of this machine. A part that fails
# does not keep the others from running: exits with 1 after all of them.
#   tests/gpu/run_all.sh [tests] [strategies] [bench]      (all three by default)   OUT=folder keeps logs and tables
#   BENCH='base fp16' takes these groups of gpu_peer.sh's rows alone
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
parts=" tests strategies bench "
for part in "$@"; do
    [[ $parts == *" $part "* ]] || { echo "there is no part $part: one or some of$parts" >&2; exit 2; }
done
out=${OUT:-$(mktemp -d)}
mkdir -p "$out" || exit
site=$(python3 -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))') || exit 2
libraries=$(printf '%s:' "$site"/torch/lib "$site"/nvidia/*/lib)
export LD_LIBRARY_PATH="${libraries}$PWD/.carry/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
home=${BUILD:-.carry}
export SHARDSCOPE_BIN="$PWD/$home/bin" SHARDSCOPE_SOURCE="$PWD"
SHARDSCOPE_PYTHON=$(command -v python3) && export SHARDSCOPE_PYTHON
{
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
    python3 -c 'import torch; print("torch", torch.__version__, "cuda", torch.version.cuda, "nccl", ".".join(map(str, torch.cuda.nccl.version())))'
    git log -1 --format='commit %h of %cs' 2>/dev/null
} | tee "$out/machine.txt"
failed=()
for part in ${*:-$parts}; do
    case $part in
    tests) ctest --test-dir "$home" -L gpu --no-tests=error --output-on-failure 2>&1 | tee "$out/tests.log" | tail -n 60 ;;
    strategies) python3 tests/gpu/strategies.py --keep "${KEEP:-$(mktemp -d)}" 2>&1 | tee "$out/strategies.log" ;;
    bench) bash tests/bench/gpu_peer.sh ${BENCH:-} 2>&1 | tee "$out/bench.log" ;;
    esac || failed+=("$part")
done
[ ${#failed[@]} = 0 ] || { echo "failed: ${failed[*]}; logs in $out" >&2; exit 1; }
