#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Step times of shardscope-worker against PyTorch's FSDP2 (tests/peers/torch_fsdp.py) on this machine: the same model,
batch, dtype, ranks and random tokens, in turns, medians over all turns; printed as a ratio (ours ÷ PyTorch's: below 1 is
faster) and, on a GPU, with the peaks of the allocator. cpu_peer.sh and gpu_peer.sh call it. Where ours has a setting that
PyTorch's does not choose by itself (oneDNN's fp32 on a CPU, NCCL's buffers where ranks share a GPU), PyTorch runs with and
without it, and both ratios are printed.

Ours records as every run does (record.level=light). SHARDSCOPE_BIN names the folder of the programs. Turns that were out
of memory are counted, a side; where ours was, this exits with 1, after all rows.
"""
import argparse
import json
import os
import random
import shutil
import sqlite3
import statistics
import sys
import tempfile

import rank_processes

SOURCE = rank_processes.SOURCE
# What shardscope-worker gives NCCL where ranks share a GPU (app/worker/setup.cpp), for the peer.
SHARED_GPU_NCCL = {"NCCL_BUFFSIZE": "67108864", "NCCL_SOCKET_NTHREADS": "4", "NCCL_NSOCKS_PERTHREAD": "4"}
VOCABULARY = {"tiny": 512, "15m": 32000, "124m": 50304, "350m": 32000, "1b3": 32000, "2b7": 32000, "6b7": 32000}


def run_ranks(ranks, command, log, own_gpus=False, on_one_gpu=False, nccl=False):
    """Starts the command once a rank; returns rank 0's output. own_gpus: rank k has GPU k; on_one_gpu: PyTorch's ranks
    share the first one, nccl: with SHARED_GPU_NCCL. Raises OutOfMemory where a rank ran out of it, and ends with
    what else went wrong."""
    each = rank_processes.environments(ranks, GLOO_SOCKET_IFNAME="lo", NCCL_NVLS_ENABLE="0")
    for rank, environment in enumerate(each):
        environment["LOCAL_DEVICE"] = str(rank) if own_gpus else "0"
        environment.pop("TORCHELASTIC_USE_AGENT_STORE", None)
        if on_one_gpu and ranks > 1:
            for name, value in SHARED_GPU_NCCL.items():  # as with the worker, what the caller has set counts
                if nccl:
                    environment.setdefault(name, value)
                else:
                    environment.pop(name, None)
            environment.update(NCCL_HOSTID=f"rank{rank}", NCCL_SOCKET_IFNAME="lo")
    failed = rank_processes.run(command, ranks, log, each=each)
    if failed and failed.out_of_memory:
        raise OutOfMemory
    if failed:
        sys.exit(f"{' '.join(command)}: {failed.text}")
    with open(f"{log}.rank0.log") as output:
        return output.read()


class OutOfMemory(Exception):
    pass


class Case:
    def __init__(self, arguments, ranks, dtype, batch, folder):
        self.a, self.ranks, self.dtype, self.batch, self.folder = arguments, ranks, dtype, batch, folder
        self.ours, self.peer, self.peer_as_is, self.exposed, self.ours_peak, self.peer_peak, self.turn = [], [], [], [], 0, 0, 0
        self.ours_out_of_memory = self.peer_out_of_memory = 0  # turns
        self.strategy = f"hybrid {arguments.shard_group}" if arguments.strategy == "hybrid" else arguments.strategy

    def run(self):
        """All turns. One that is out of memory is counted, and the next is tried all the same."""
        for _ in range(self.a.turns):
            try:
                self.run_ours()
            except OutOfMemory:
                self.ours_out_of_memory += 1
            try:
                if not self.a.alone:
                    self.run_peer()
            except OutOfMemory:
                self.peer_out_of_memory += 1

    def run_ours(self):
        a = self.a
        self.turn += 1
        out = os.path.join(self.folder, f"{self.ranks}-{self.dtype}-{self.turn}")
        settings = {
            "model.preset": a.size, "train.steps": a.warmup + a.steps, "train.micro_batch": self.batch,
            "train.accumulation": 1, "checkpoint.at_end": "false",
            "train.sequence_length": a.seq, "data.path": self.tokens(), "data.validation": 0,
            "optimizer.learning_rate": 3e-4, "optimizer.warmup_steps": 0, "optimizer.clip_norm": 0,
            "precision.compute": self.dtype, "parallel.device": a.device, "parallel.strategy": a.strategy,
            "parallel.share_device": "true" if a.device == "cuda" and not a.gpus else "false",
        }
        if a.strategy == "hybrid":
            settings["parallel.shard_group"] = a.shard_group
        settings.update(assignment.split("=", 1) for assignment in a.set)
        command = [a.worker, a.config, "--out", out]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        run_ranks(self.ranks, command, out)
        database = sqlite3.connect(os.path.join(out, "attempt-1", "rank-0.sqlite"))
        rows = database.execute("SELECT end_ns - start_ns, peak_allocated_bytes, exposed_communication_ns, wall_ns FROM step WHERE number > ? "
                                "ORDER BY number", (a.warmup,)).fetchall()
        self.ours += [row[0] / 1e6 for row in rows]
        self.exposed += [row[2] / row[3] for row in rows if row[2] is not None and row[3]]
        self.ours_peak = max([self.ours_peak] + [row[1] or 0 for row in rows])
        if a.keep:
            shutil.copytree(out, os.path.join(a.keep, os.path.basename(out)), dirs_exist_ok=True)
        shutil.rmtree(out)

    def run_peer(self):
        a = self.a
        command = [a.python, os.path.join(SOURCE, "tests/peers/torch_fsdp.py"), "--size", a.size, "--seq", str(a.seq),
                   "--batch", str(self.batch), "--steps", str(a.steps), "--warmup", str(a.warmup), "--dtype", self.dtype,
                   "--strategy", "ddp" if a.strategy == "none" and self.ranks > 1 else a.strategy, "--backend", "nccl" if a.device == "cuda" else "gloo", "--lr", "3e-4",
                   "--data", self.tokens()]
        if a.strategy == "hybrid":
            command += ["--shard-group", str(a.shard_group)]
        command += a.peer
        if self.peer_gets():
            self.peer_as_is += self.result_of(command)["step_ms"]
        if a.device == "cpu":
            command.append("--onednn-fp32")
        result = self.result_of(command, nccl=True)
        self.peer += result["step_ms"]
        self.peer_peak = max(self.peer_peak, result["peak_bytes"])

    def peer_gets(self):
        """What of ours the peer has too, though it does not do so by itself: then it runs a second time, as it is."""
        if self.a.device == "cpu":
            return "oneDNN's fp32" if self.dtype == "fp32" else None
        return "our settings of NCCL" if self.ranks > 1 and not self.a.gpus else None

    def result_of(self, command, nccl=False):
        a = self.a
        output = run_ranks(self.ranks, command, os.path.join(self.folder, "peer"), a.gpus, a.device == "cuda" and not a.gpus, nccl)
        result = next((line for line in reversed(output.splitlines()) if line.startswith("{")), None)
        if result is None:
            sys.exit(f"{' '.join(command)} printed no result; its log ends with: {output[-2000:]}")
        return json.loads(result)

    def tokens(self):
        """Random uint16 tokens, enough for every step of both."""
        path = os.path.join(self.folder, "tokens.bin")
        if not os.path.exists(path):
            generator = random.Random(1)
            count = 2_000_000
            with open(path, "wb") as file:
                file.write(b"".join(generator.randrange(VOCABULARY[self.a.size]).to_bytes(2, "little")
                                    for _ in range(count)))
        return path

    def figures(self):
        """One row as a dictionary: milliseconds, bytes, turns that were out of memory, and None for what was not measured."""
        a, median = self.a, lambda values: statistics.median(values) if values else None
        return dict(size=a.size, ranks=self.ranks, strategy=self.strategy, dtype=self.dtype, batch=self.batch, seq=a.seq, settings=a.set + a.peer,
                    alone=a.alone, turns=a.turns, ours_ms=median(self.ours), ours_min_ms=min(self.ours, default=None),
                    exposed=median(self.exposed) if self.ranks > 1 else None, ours_peak=self.ours_peak or None,
                    ours_out_of_memory=self.ours_out_of_memory, peer_ms=median(self.peer), peer_min_ms=min(self.peer, default=None),
                    peer_as_is_ms=median(self.peer_as_is),
                    peer_peak=self.peer_peak or None, peer_out_of_memory=self.peer_out_of_memory)

    def name(self):
        return f"{self.a.size:>5} {self.ranks} ranks {self.strategy} {self.dtype} {self.batch}×{self.a.seq} {' '.join(self.a.set + self.a.peer)}"

    def side(self, who, times, peak, out_of_memory):
        """One side's median and peak, and in how many turns it was out of memory."""
        text = [f"{who} {statistics.median(times):9.1f} ms (min {min(times):.1f})"] if times else [f"{who}: not measured"]
        if peak and self.a.device == "cuda":
            text.append(f"peak {peak / 2**30:.2f} GiB")
        if out_of_memory:
            text = text if times else [f"{who}:"]
            text.append(f"out of memory in {out_of_memory} of {self.a.turns} turns")
        return " ".join(text)

    def ratio(self):
        """Of the medians; None where one of the sides has none."""
        return statistics.median(self.ours) / statistics.median(self.peer) if self.ours and self.peer else None

    def line(self):
        text = [self.name(), self.side("ours", self.ours, self.ours_peak, self.ours_out_of_memory)]
        if self.ranks > 1 and self.exposed:
            text.append(f"exposed {100 * statistics.median(self.exposed):.1f} %")
        if not self.a.alone:
            text.append(self.side("PyTorch", self.peer, self.peer_peak, self.peer_out_of_memory))
        if self.ratio() is not None:
            text.append(f"ratio {self.ratio():.3f}")
        if self.peer_as_is:
            as_is = statistics.median(self.peer_as_is)
            beside = f": ratio {statistics.median(self.ours) / as_is:.3f}" if self.ours else ""
            text.append(f"(PyTorch without {self.peer_gets()} {as_is:.1f} ms{beside})")
        if self.ratio() is not None and self.a.device == "cuda":
            text.append(f"ratio of peaks {self.ours_peak / self.peer_peak:.3f}")
        return "  ".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], required=True)
    parser.add_argument("--size", choices=VOCABULARY, required=True)
    parser.add_argument("--ranks", type=int, nargs="+", required=True)
    parser.add_argument("--batch", type=int, required=True, help="sequences a step of all ranks (cuda), of a rank (cpu, --gpus)")
    parser.add_argument("--gpus", action="store_true", help="each rank has a GPU of its own, and --batch is a rank's")
    parser.add_argument("--seq", type=int, required=True)
    parser.add_argument("--dtypes", nargs="+", default=["bf16", "fp32"])
    parser.add_argument("--strategy", choices=["full", "grad_op", "none", "hybrid"], default="full",
                        help="none: beside DDP")
    parser.add_argument("--shard-group", type=int, default=2, help="hybrid: ranks that share a replica")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of ours")
    parser.add_argument("--peer", action="append", default=[], metavar="ARGUMENT", help="of torch_fsdp.py: --peer=--checkpoint")
    parser.add_argument("--alone", action="store_true", help="only ours: there is no such mode in PyTorch's")
    parser.add_argument("--json", metavar="FILE", help="each row's figures are appended here, an object a line (tests/gpu/scaling_table.py reads them)")
    parser.add_argument("--keep", metavar="FOLDER", help="where our runs' folders are kept, to be looked into")
    parser.add_argument("--fail-above", type=float, help="exit with 1 where a ratio is over this")
    a = parser.parse_args()
    a.worker = rank_processes.worker()
    venv = os.path.join(os.environ.get("SHARDSCOPE_DEPS", os.path.join(SOURCE, ".deps")), "venv/bin/python")
    a.python = venv if os.path.exists(venv) else sys.executable
    bad = False
    with tempfile.TemporaryDirectory(prefix="shardscope-bench-") as folder:
        a.config = os.path.join(folder, "empty.toml")
        open(a.config, "w").close()
        for ranks in a.ranks:
            for dtype in a.dtypes:
                batch = a.batch // ranks if a.device == "cuda" and not a.gpus else a.batch
                case = Case(a, ranks, dtype, batch, folder)
                case.run()
                print(case.line(), flush=True)
                if a.json:
                    with open(a.json, "a") as file:
                        file.write(json.dumps(case.figures()) + "\n")
                bad |= case.ours_out_of_memory > 0 or (a.fail_above is not None and (case.ratio() or 0) > a.fail_above)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
