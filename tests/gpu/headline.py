#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much more model trains in the same memory: the decoder of 1b3's width with the most blocks that does its steps under
a cap of the allocator (memory.cap_bytes), under `none` on one rank's memory and under `full` on 2, 4, 8 ranks of the one
GPU; or, with --gpus, of 6b7's width on whole cards. bf16, AdamW with fp32 moments, recompute of whole blocks, micro-batch 1. The number of blocks is found by what two small
models take, and proved by running it and one block more. Prints a table; exits with 1 where a ratio is below its goal.

    tests/gpu/headline.py [--ranks 2,4,8] [--cap-gib 12 | --gpus] [--steps 5]      SHARDSCOPE_BIN names bin/
"""
import argparse
import glob
import json
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bench"))
import rank_processes

VOCABULARY, SEQUENCE = 32000, 1024
WIDTHS = {"1b3": (2048, 5632, 16), "6b7": (4096, 11008, 32)}  # hidden size, feed-forward's, heads
# Of the cap, what the last blocks cannot use: free pieces of the allocator that nothing asked for fits into. Rather too
# little: a trial that fails ends in its first step.
FRAGMENTED = 0.15 * 2**30
# Of a card, what the CUDA context, the kernels and NCCL take beside the allocator.
CONTEXT = 1.5 * 2**30
GOALS = {2: 1.9}  # parameters against `none`; every further doubling must give more than the one before


def parameters(width, blocks):
    hidden, feed_forward, _ = width
    return blocks * (4 * hidden * hidden + 3 * hidden * feed_forward + 2 * hidden) + 2 * VOCABULARY * hidden + hidden


def card_bytes():
    asked = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    return min(int(line) for line in subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()) * 2**20


def write_model(folder, width, blocks):
    hidden, feed_forward, heads = width
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden,
                   "intermediate_size": feed_forward, "num_attention_heads": heads, "num_key_value_heads": heads,
                   "num_hidden_layers": blocks, "vocab_size": VOCABULARY, "max_position_embeddings": SEQUENCE,
                   "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": False}, file)


class Trial:
    """One run: whether it did its steps, its peak and its step time, or why it ended."""

    def __init__(self, options, base, ranks, strategy, blocks, steps):
        name = os.path.join(base, f"{strategy}-{ranks}-{blocks}-{steps}")
        shutil.rmtree(name, ignore_errors=True)
        write_model(name + "-model", options.width, blocks)
        open(name + ".toml", "w").close()
        command = [options.worker, name + ".toml", "--out", name]
        for key, value in {
                "model.path": name + "-model", "data.path": os.path.join(base, "tokens.bin"), "data.validation": 0,
                "train.steps": steps, "train.micro_batch": 1, "train.accumulation": 1,
                "checkpoint.at_end": "false", "train.sequence_length": SEQUENCE,
                "precision.compute": "bf16", "optimizer.warmup_steps": 0, "memory.recompute": "block",
                "memory.cap_bytes": 0 if options.gpus else int(options.cap_gib * 2**30), "parallel.device": options.device,
                "parallel.strategy": strategy,
                "parallel.share_device": "true" if options.device == "cuda" and not options.gpus else "false"}.items():
            command += ["--set", f"{key}={value}"]
        began = time.monotonic()
        self.failure = rank_processes.run(command, ranks, name)
        self.seconds = time.monotonic() - began
        self.ok = self.failure is None
        if self.failure and not self.failure.out_of_memory:
            sys.exit(f"{strategy}, {ranks} ranks, {blocks} blocks failed for another reason than memory:\n{self.failure.text}")
        self.peak, self.step_ms = 0, []
        for path in glob.glob(name + "/attempt-1/rank-*.sqlite"):
            rows = sqlite3.connect(path).execute("SELECT peak_allocated_bytes, end_ns - start_ns FROM step").fetchall()
            self.peak = max([self.peak] + [row[0] or 0 for row in rows])
            self.step_ms += [row[1] / 1e6 for row in rows[1:] if row[1]]
        print(f"  {strategy:5} {ranks} ranks {blocks:3} blocks {steps} steps: {'trains' if self.ok else 'does not'}, peak "
              f"{self.peak / 2**30:.2f} GiB, {self.seconds:.0f} s", file=sys.stderr, flush=True)


def largest(options, base, ranks, strategy):
    """The trial with the most blocks that trains, and the one with a block more that doesn't."""
    few, more = (Trial(options, base, ranks, strategy, blocks, 2) for blocks in (2, 6))
    blocks = 1  # where a small one does not train or tells nothing
    if few.ok and more.ok and more.peak > few.peak:
        a_block = (more.peak - few.peak) / 4
        blocks = max(1, int(2 + (options.room - FRAGMENTED - few.peak) / a_block))
    trial = Trial(options, base, ranks, strategy, blocks, options.steps)
    while not trial.ok:
        if blocks == 1:
            sys.exit(f"{strategy}, {ranks} ranks: not even a model of one block trains in this memory: {trial.failure.text}")
        failed, blocks = trial, blocks - 1
        trial = Trial(options, base, ranks, strategy, blocks, options.steps)
        if trial.ok:
            return blocks, trial, failed
    while True:
        next_trial = Trial(options, base, ranks, strategy, blocks + 1, options.steps)
        if not next_trial.ok:
            return blocks, trial, next_trial
        blocks, trial = blocks + 1, next_trial


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="2,4,8")
    parser.add_argument("--cap-gib", type=float, default=12)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--gpus", action="store_true", help="each rank has a GPU of its own, and all of it")
    options = parser.parse_args()
    options.worker = rank_processes.worker()
    options.room = card_bytes() - CONTEXT if options.gpus else options.cap_gib * 2**30
    options.width = WIDTHS["6b7" if options.gpus else "1b3"]
    base = tempfile.mkdtemp(prefix="headline-")
    with open(os.path.join(base, "tokens.bin"), "wb") as file:
        generator = random.Random(1)
        file.write(b"".join(generator.randrange(VOCABULARY).to_bytes(2, "little") for _ in range(200_000)))
    bad, reference, before = False, None, 0
    print(f"{'ranks':>5} {'strategy':8} {'blocks':>6} {'parameters':>13} {'ratio':>6} {'peak GiB':>9} {'step ms':>9}  a block more")
    for ranks in [1] + [int(r) for r in options.ranks.split(",")]:
        strategy = "none" if ranks == 1 else "full"
        blocks, trial, failed = largest(options, base, ranks, strategy)
        count = parameters(options.width, blocks)
        reference = reference or count
        ratio = count / reference
        bad |= ranks > 1 and (ratio < GOALS.get(ranks, 0) or ratio <= before)
        before = ratio
        why = failed.failure.text.splitlines()[0][:160]
        print(f"{ranks:>5} {strategy:8} {blocks:>6} {count:>13,} {ratio:>6.2f} {trial.peak / 2**30:>9.2f} "
              f"{statistics.median(trial.step_ms or [0]):>9.0f}  {why}", flush=True)
    shutil.rmtree(base)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
