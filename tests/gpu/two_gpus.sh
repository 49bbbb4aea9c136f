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
# SIZES="1b3 6b7" of speed; JOBS=8 runs of correctness at a time; OUT keeps logs. The table of speed comes last. What fails
# does not keep the rest from running: exits with 1 after all of it.
#   tests/gpu/two_gpus.sh [PART]...
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
parts=" correctness speed parameters bandwidth recording "
for part in "$@"; do
  [[ $parts == *" $part "* ]] || { echo "there is no part $part: one or some of$parts" >&2; exit 2; }
done
cards=$(nvidia-smi --list-gpus | wc -l)
counts=()
for ((n = 1; n <= cards; n *= 2)); do counts+=("$n"); done
several=("${counts[@]:1}")
[ ${#several[@]} -gt 0 ] || { echo "tests/gpu/two_gpus.sh needs two GPUs or more; here is $cards" >&2; exit 2; }
gpus=${counts[-1]} # of three cards two, of six four
out=${OUT:-$(mktemp -d)}
mkdir -p "$out" || exit
site=$(python3 -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))') || exit 2
libraries=$(printf '%s:' "$site"/torch/lib "$site"/nvidia/*/lib)
export LD_LIBRARY_PATH="${libraries}$PWD/.carry/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export SHARDSCOPE_BIN="$PWD/${BUILD:-.carry}/bin"
# NVLink multicast stays off.
export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$out/machine.txt"
nvidia-smi topo -m >"$out/topology.txt" 2>&1

bench() { python3 tests/bench/peer_bench.py --device cuda --gpus --seq 2048 --dtypes bf16 --turns 1 --steps 8 --json "$out/speed.json" "$@"; }
apart() { # apart SIZE BATCH STRATEGY: one rank on each card at the same time; no rows of it where one of them failed
  local card ids=() bad=0
  for ((card = 0; card < gpus; ++card)); do
    CUDA_VISIBLE_DEVICES=$card bench --size "$1" --batch "$2" --strategy "$3" --ranks 1 --alone --json "$out/apart.$card.json" &
    ids+=($!)
  done
  for ((card = 0; card < gpus; ++card)); do
    wait "${ids[card]}" || { echo "card $card of those apart failed: $*" >&2; bad=1; }
  done
  [ $bad = 1 ] || sed 's/^{/{"apart": true, /' "$out"/apart.*.json >>"$out/speed.json"
  rm -f "$out"/apart.*.json
  return $bad
}
speed() { # speed SIZE BATCH: 1 where any of it failed
  local strategy group bad=0
  for strategy in full grad_op none; do
    apart "$1" "$2" "$strategy" || bad=1
    bench --size "$1" --batch "$2" --strategy "$strategy" --ranks "${counts[@]}" || bad=1
  done
  bench --size "$1" --batch "$2" --ranks "${several[@]}" --peer=--compile || bad=1
  bench --size "$1" --batch "$2" --ranks "${several[@]}" --set parallel.prefetch=off --set parallel.forward_prefetch=false --alone || bad=1
  for ((group = 2; group < gpus; group *= 2)); do
    bench --size "$1" --batch "$2" --ranks "$gpus" --strategy hybrid --shard-group "$group" || bad=1
  done
  return $bad
}
sizes() { # speed of every size
  local size bad=0
  rm -f "$out"/apart.*.json
  : >"$out/speed.json"
  for size in ${SIZES:-1b3 6b7}; do
    case $size in 6b7) speed "$size" 1 ;; *) speed "$size" 8 ;; esac || bad=1
  done
  return $bad
}
comma() { local IFS=,; echo "$*"; }

failed=()
for part in ${*:-$parts}; do
  case $part in
  correctness) python3 tests/gpu/strategies.py --gpus --ranks "$(comma "${counts[@]}")" --jobs "${JOBS:-8}" 2>&1 | tee "$out/strategies.log" ;;
  speed) sizes 2>&1 | tee "$out/speed.log" ;;
  parameters) python3 tests/gpu/headline.py --gpus --ranks "$(comma "${several[@]}")" 2>&1 | tee "$out/parameters.log" ;;
  bandwidth) python3 tests/gpu/bandwidth.py --gpus "$gpus" 2>&1 | tee "$out/bandwidth.log" ;;
  recording) python3 tests/gpu/small_recording.py --ranks "$gpus" --out "$out/recording.tar.xz" ;;
  esac || failed+=("$part")
done
if [[ " ${*:-$parts} " == *" speed "* ]]; then
  python3 tests/gpu/scaling_table.py "$out/speed.json" | tee "$out/table.md" || failed+=("table of speed")
fi
[ ${#failed[@]} = 0 ] || { echo "failed: ${failed[*]}; logs in $out" >&2; exit 1; }
