#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs on a machine with several NVIDIA GPUs: correctness over NVLink, then speed, peak and exposed communication beside
# PyTorch's FSDP2 (plain and compiled) and DDP, at one rank and at all GPUs with equal work a GPU, then what NCCL and a plain
# copy move between two cards. From what tests/gpu/pack.sh packed (.carry/), or BUILD=folder.
#   tests/gpu/two_gpus.sh [correctness] [speed] [bandwidth]      (all by default)      GPUS=2 SIZES="1b3 6b7" OUT=folder
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
out=${OUT:-$(mktemp -d)}
gpus=${GPUS:-$(nvidia-smi --list-gpus | wc -l)}
sizes=${SIZES:-1b3 6b7}
what=${*:-correctness speed bandwidth}
site=$(python3 -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))')
libraries=$(printf '%s:' "$site"/torch/lib "$site"/nvidia/*/lib)
export LD_LIBRARY_PATH="${libraries}$PWD/.carry/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export SHARDSCOPE_BIN="$PWD/${BUILD:-.carry}/bin" SHARDSCOPE_SOURCE="$PWD"
# NVLink multicast stays off.
export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$out/machine.txt"
nvidia-smi topo -m >"$out/topology.txt" 2>&1

speed() { # speed SIZE BATCH
  local strategy bench
  bench=(python3 tests/bench/peer_bench.py --device cuda --gpus --size "$1" --batch "$2" --seq 2048 --dtypes bf16 --turns 1 --steps 8)
  for strategy in full grad_op none; do
    "${bench[@]}" --ranks 1 "$gpus" --strategy "$strategy"
  done
  "${bench[@]}" --ranks "$gpus" --peer=--compile
  "${bench[@]}" --ranks "$gpus" --set parallel.prefetch=off --set parallel.forward_prefetch=false --alone
}

for part in $what; do
  case $part in
  correctness) python3 tests/gpu/strategies.py --gpus --ranks "1,$gpus" 2>&1 | tee "$out/strategies.log" ;;
  speed)
    for size in $sizes; do
      case $size in 6b7) speed "$size" 1 ;; *) speed "$size" 8 ;; esac
    done 2>&1 | tee "$out/speed.log"
    ;;
  bandwidth) python3 tests/gpu/bandwidth.py --gpus "$gpus" 2>&1 | tee "$out/bandwidth.log" ;;
  *) echo "there is no part $part: correctness, speed, bandwidth" >&2; exit 2 ;;
  esac
done
