#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real workers on one GPU: 1, 2 and 4 ranks (several ranks share the card through the real NCCL), every strategy, fp32,
bf16 and fp16, with and without offload, recompute, LoRA and gradients that travel in bf16,
against the 1-rank run of the same precision: losses and gradient norms of every step. Then, by SQL in what they
recorded: the memory equation at every sample, samples after step 10 with more reserved than that step had, kernels, NCCL
kernels joined to their collectives, drops. Prints a table;
exits with 1 where a figure is over its bound.

    tests/gpu/strategies.py [--device cuda|cpu] [--preset tiny] [--steps 20] [--keep FOLDER]      SHARDSCOPE_BIN names bin/
"""
import argparse
import glob
import os
import shutil
import sqlite3
import sys
import tempfile
from multiprocessing.pool import ThreadPool

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bench"))
import rank_processes

# Bounds of the table: relative difference of each step's loss, and of its gradient norm.
BOUNDS = {"fp32": (1e-5, 1e-5), "bf16": (5e-4, 1e-2), "fp16": (5e-4, 1e-2)}
# So low that no step is skipped: a skipped one has no norm to compare.
SCALE = {"fp16": {"precision.scaler.initial": 1024}}


def run(worker, folder, ranks, settings, timeout=240):
    """Starts the ranks as torchrun would; None or rank_processes' Failure."""
    config = folder + ".toml"
    open(config, "w").write("")
    arguments = [worker, config, "--out", folder]
    for key, value in settings.items():
        arguments += ["--set", f"{key}={value}"]
    return rank_processes.run(arguments, ranks, folder, timeout)


def databases(folder):
    return [sqlite3.connect(path) for path in sorted(glob.glob(folder + "/attempt-1/rank-*.sqlite"))]


def curve(folder):
    rows = databases(folder)[0].execute("SELECT loss, gradient_norm FROM step ORDER BY number").fetchall()
    return [r[0] for r in rows], [r[1] for r in rows]


def largest_difference(values, reference):
    return max(abs(v - r) / abs(r) for v, r in zip(values, reference))


CATEGORIES = ["parameters", "gathered", "gradients", "optimizer", "activations", "communication", "temporary", "input", "other",
              "rounding"]


# Samples of later steps that have more reserved in their place than any of the last step in which that may grow. The
# host's allocator has no pool: what it reserves is what is allocated at that moment.
SETTLED = 10
GROWN = f"""SELECT count(*) FROM memory JOIN step USING (process_id, step_id) WHERE number > {SETTLED} AND place <> 'host' AND reserved_bytes >
    coalesce((SELECT max(m.reserved_bytes) FROM memory m JOIN step s USING (process_id, step_id)
              WHERE s.number = {SETTLED} AND m.place = memory.place), 0)"""


def recorded(folder, cuda):
    """What the databases of a run say: a dictionary of counts over all its ranks."""
    total = " + ".join(c + "_bytes" for c in CATEGORIES)
    out = dict(samples=0, unequal=0, grown=0, kernels=0, nccl=0, collectives=0, timed=0, dropped=0, peak=0)
    for db in databases(folder):
        one = lambda query: db.execute(query).fetchone()[0] or 0
        place = "device" if cuda else "host"
        out["samples"] += one(f"SELECT count(*) FROM memory WHERE place = '{place}'")
        out["unequal"] += one(f"SELECT count(*) FROM memory WHERE place = '{place}' AND {total} <> allocated_bytes")
        out["grown"] += one(GROWN)
        out["kernels"] += one("SELECT count(*) FROM span JOIN lane USING (lane_id) WHERE kind = 'stream' AND category = 'compute'")
        out["nccl"] += one("SELECT count(*) FROM span JOIN lane USING (lane_id) WHERE kind = 'stream' AND category = 'communication' "
                           "AND collective_id IS NOT NULL")
        out["collectives"] += one("SELECT count(*) FROM collective")
        out["timed"] += one("SELECT count(*) FROM collective WHERE ended_ns IS NOT NULL")
        out["dropped"] += one("SELECT sum(dropped_records) FROM flush")
        out["peak"] = max(out["peak"], one("SELECT max(peak_allocated_bytes) FROM step"))
    return out


# What lies where: parameters, gradients, optimizer.
OFFLOADS = {"": ("none", "none", "none"), "cpu": ("cpu", "cpu", "cpu"), "opt": ("none", "none", "cpu"),
            "grad": ("none", "cpu", "none"), "nvme": ("nvme", "cpu", "nvme")}


def places(offload, cuda):
    chosen = [place if cuda or place != "cpu" else "none" for place in OFFLOADS[offload]]
    return {f"offload.{what}": place for what, place in zip(("parameters", "gradients", "optimizer"), chosen)}


# What else is compared: gradients that travel in bf16 (bounds of bf16), and adapters on a frozen base, which have a curve
# of their own.
LORA = {"lora.rank": 8, "lora.targets": '["block.*"]'}
OTHERS = {"bf16 grad": {"precision.reduce": "bf16"},
          "lora": LORA,
          "lora cpu": {**LORA, **places("cpu", True)},
          "block": {"memory.recompute": "block"},
          "selective": {"memory.recompute": "selective"},
          "act": {"memory.activation_offload": "true"},
          "act block": {"memory.recompute": "block", "memory.activation_offload": "true"},
          "block cpu": {"memory.recompute": "block", **places("cpu", True)}}


def groups(ranks, cuda, precision):
    """Rows of what four ranks and more have: hybrid in groups of 2, 4 … and resharding to as many."""
    rows, size = [], 2
    while size < ranks:
        rows += [("hybrid", str(size), {"parallel.shard_group": size}), ("full", f"reshard {size}", {"parallel.reshard_group": size})]
        size *= 2
    if rows and ranks <= 4:  # the batch of 8 in two micro-batches
        rows.append(("hybrid", "2 halves", {"parallel.shard_group": 2, "train.micro_batch": 4 // ranks}))
    if rows and precision != "fp32":
        rows.append(("hybrid", "2 bf16 grad", {"parallel.shard_group": 2, **OTHERS["bf16 grad"]}))
    if rows and cuda:
        rows.append(("hybrid", "2 grad", {"parallel.shard_group": 2, **places("grad", cuda)}))
        rows.append(("hybrid", "2 block cpu", {"parallel.shard_group": 2, **OTHERS["block cpu"]}))
    return rows


def cases(ranks, cuda, precision):
    """(strategy, what is special, its settings): strategies alone, then with offload and others where a rank count is small."""
    strategies = ["full"] if ranks == 1 else ["full", "grad_op", "none"]
    special = {name: places(name, cuda) for name in (["cpu", "opt", "grad", "nvme"] if cuda else ["nvme"])}
    special.update({name: settings for name, settings in OTHERS.items()
                    if (ranks > 1 and precision != "fp32" or name != "bf16 grad") and (cuda or not {"cpu", "act"} & set(name.split()))})
    return [(s, "", {}) for s in strategies] + [(s, *one) for s in strategies for one in special.items() if ranks <= 2] + groups(ranks, cuda, precision)


def curve_of(special):
    """Rows with adapters have a curve of their own."""
    return "lora" if special.startswith("lora") else ""


def rows_of(precisions, counts, cuda):
    """Every row (precision, ranks, *case), behind those of one rank that they are compared with."""
    rows = []
    for precision in precisions:
        several = [(precision, ranks, *case) for ranks in counts if ranks > 1 for case in cases(ranks, cuda, precision)]
        curves = {curve_of(row[3]) for row in several}
        rows += [(precision, 1, *case) for case in cases(1, cuda, precision) if 1 in counts or case[1] in curves] + several
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--sequence", type=int, default=128)
    parser.add_argument("--ranks", default="1,2,4")
    parser.add_argument("--precisions", default=",".join(BOUNDS))
    parser.add_argument("--gpus", action="store_true", help="each rank has a GPU of its own")
    parser.add_argument("--keep")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many rows at a time")
    options = parser.parse_args()
    if options.steps <= SETTLED:
        parser.error(f"--steps: more than {SETTLED}, after which no reserved memory may grow")
    cuda = options.device == "cuda"
    worker = rank_processes.worker()
    base = options.keep or tempfile.mkdtemp(prefix="strategies-")
    os.makedirs(base, exist_ok=True)
    bad = 0
    print(f"{'precision':9} {'ranks':>5} {'strategy':8} {'special':12} {'loss':>9} {'norm':>9} {'peak MiB':>9} {'samples':>8} {'unequal':>7} {'grown':>5} "
          f"{'kernels':>8} {'nccl':>6} {'timed/collectives':>18} {'dropped':>7}")
    rows = rows_of(options.precisions.split(","), [int(count) for count in options.ranks.split(",")], cuda)
    references = {}

    def train(row):
        precision, ranks, strategy, special, settings = row
        folder = os.path.join(base, f"{precision}-{ranks}-{strategy}{'-' + special.replace(' ', '-') if special else ''}")
        shutil.rmtree(folder, ignore_errors=True)
        return folder, run(worker, folder, ranks, {
            "model.preset": options.preset, "parallel.strategy": strategy, "parallel.device": options.device,
            "parallel.share_device": "true" if cuda and not options.gpus else "false", "precision.compute": precision,
            "train.global_batch": 8, "train.micro_batch": 8 // ranks, "train.sequence_length": options.sequence,
            "train.steps": options.steps, "checkpoint.at_end": "false", "optimizer.learning_rate": 1e-3, "optimizer.warmup_steps": 0,
            "data.path": rank_processes.SOURCE + "/LICENSES", **settings, **SCALE.get(precision, {})})

    for (precision, ranks, strategy, special, _), (folder, failed) in zip(rows, ThreadPool(options.jobs).imap(train, rows)):
        title = f"{precision:9} {ranks:5} {strategy:8} {special:12}"
        losses, norms = ([], []) if failed else curve(folder)
        why = failed.text if failed else None
        if not why and (len(losses) != options.steps or None in losses or None in norms):
            why = f"{len(losses)} steps recorded, losses {losses[:3]} …"
        if not why and ranks == 1:
            references.setdefault((precision, curve_of(special)), (losses, norms))
        reference = references.get((precision, curve_of(special)))
        if not why and not reference:
            why = "the run of 1 rank that it is compared with failed"
        if why:
            bad += 1
            print(f"{title} FAILED {why}", flush=True)
            continue
        loss_bound, norm_bound = BOUNDS[precision]
        loss, norm = largest_difference(losses, reference[0]), largest_difference(norms, reference[1])
        r = recorded(folder, cuda)
        wrong = (loss > loss_bound or norm > norm_bound or r["unequal"] or r["grown"] or not r["samples"] or r["dropped"]
                 or losses[-1] >= losses[0] or (cuda and not r["kernels"]) or (cuda and ranks > 1 and not r["nccl"])
                 or (ranks > 1 and r["timed"] != r["collectives"]))
        bad += bool(wrong)
        print(f"{title} {loss:9.1e} {norm:9.1e} {r['peak'] / 2**20:9.1f} {r['samples']:8} "
              f"{r['unequal']:7} {r['grown']:5} {r['kernels']:8} {r['nccl']:6} {r['timed']:9}/{r['collectives']:<8} {r['dropped']:7}"
              f"{'  OVER ITS BOUND' if wrong else ''}", flush=True)
    print(f"{bad} of {len(rows)} rows over their bounds; folders in {base}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
