#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs on a machine with two or more NVIDIA GPUs, at 1, 2, 4 … of them: from what tests/gpu/pack.sh packed (.carry/), or
# BUILD=folder. Parts, all of them by default:
#   correctness   losses of every strategy, precision, recompute and offload against one rank, over NVLink
#   speed         step, peak and exposed communication at equal work a GPU beside PyTorch's FSDP2 (plain and compiled) and
#                 DDP; one rank on every card at the same time; without prefetch; `hybrid` where there are four GPUs
#   parameters    the largest decoder that trains on a whole card, and on all of them
#   bandwidth     what NCCL and a plain copy move between two cards
#   recording     a small run of all ranks, packed, for the tests of the views
# SIZES="1b3 6b7" of speed; JOBS=8 runs of correctness at a time; OUT keeps logs. The table of speed comes last.
#   tests/gpu/two_gpus.sh [PART]...
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
out=${OUT:-$(mktemp -d)}
gpus=$(nvidia-smi --list-gpus | wc -l)
site=$(python3 -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))')
libraries=$(printf '%s:' "$site"/torch/lib "$site"/nvidia/*/lib)
export LD_LIBRARY_PATH="${libraries}$PWD/.carry/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export SHARDSCOPE_BIN="$PWD/${BUILD:-.carry}/bin" SHARDSCOPE_SOURCE="$PWD"
# NVLink multicast stays off.
export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$out/machine.txt"
nvidia-smi topo -m >"$out/topology.txt" 2>&1
counts=()
for ((n = 1; n <= gpus; n *= 2)); do counts+=("$n"); done
several=("${counts[@]:1}")
[ ${#several[@]} -gt 0 ] || { echo "tests/gpu/two_gpus.sh needs two GPUs or more; here is $gpus" >&2; exit 2; }

bench() { python3 tests/bench/peer_bench.py --device cuda --gpus --seq 2048 --dtypes bf16 --turns 1 --steps 8 --json "$out/speed.json" "$@"; }
apart() { # apart SIZE BATCH STRATEGY: one rank on each card at the same time
  local card
  for ((card = 0; card < gpus; ++card)); do
    CUDA_VISIBLE_DEVICES=$card bench --size "$1" --batch "$2" --strategy "$3" --ranks 1 --alone --json "$out/apart.$card.json" &
  done
  wait
  for ((card = 0; card < gpus; ++card)); do sed 's/^{/{"apart": true, /' "$out/apart.$card.json" >>"$out/speed.json"; done
  rm -f "$out"/apart.*.json
}
speed() { # speed SIZE BATCH
  local strategy group
  for strategy in full grad_op none; do
    apart "$1" "$2" "$strategy"
    bench --size "$1" --batch "$2" --strategy "$strategy" --ranks "${counts[@]}"
  done
  bench --size "$1" --batch "$2" --ranks "${several[@]}" --peer=--compile
  bench --size "$1" --batch "$2" --ranks "${several[@]}" --set parallel.prefetch=off --set parallel.forward_prefetch=false --alone
  for ((group = 2; group < gpus; group *= 2)); do
    bench --size "$1" --batch "$2" --ranks "$gpus" --strategy hybrid --shard-group "$group"
  done
}
parts=" correctness speed parameters bandwidth recording "
for part in "$@"; do
  [[ $parts == *" $part "* ]] || { echo "there is no part $part: one or some of$parts" >&2; exit 2; }
done
comma() { local IFS=,; echo "$*"; }

for part in ${*:-$parts}; do
  case $part in
  correctness) python3 tests/gpu/strategies.py --gpus --ranks "$(comma "${counts[@]}")" --jobs "${JOBS:-8}" 2>&1 | tee "$out/strategies.log" ;;
  speed)
    for size in ${SIZES:-1b3 6b7}; do
      case $size in 6b7) speed "$size" 1 ;; *) speed "$size" 8 ;; esac
    done 2>&1 | tee "$out/speed.log"
    ;;
  parameters) python3 tests/gpu/headline.py --gpus --ranks "$(comma "${several[@]}")" 2>&1 | tee "$out/parameters.log" ;;
  bandwidth) python3 tests/gpu/bandwidth.py --gpus "$gpus" 2>&1 | tee "$out/bandwidth.log" ;;
  recording) python3 tests/gpu/small_recording.py --ranks "$gpus" --out "$out/recording.tar.xz" ;;
  esac
done
[ ! -e "$out/speed.json" ] || python3 tests/gpu/scaling_table.py "$out/speed.json" | tee "$out/table.md"
