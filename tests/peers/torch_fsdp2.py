#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""FSDP2's own training, for a test: ranks on the CPU over Gloo, from given weights and tokens, with clipping.

    torch_fsdp2.py SPEC.json

The specification is that of torch_reference.py, whose operators the decoder here is made of, with "ranks", a "folder" for
files, and "cases": what differs from one training to the next (name, precision, optimizer, momentum, reshard). Printed are
each case's losses and gradient norms. NAME-first.bin and NAME-last.bin in the folder are its fp32 weights after the first
and after the last step, in the order of the specification's parameters.

Nothing is done better here than FSDP2 does it: in bf16 the embedding's gradient is summed in bf16.
"""
import json
import multiprocessing
import os
import sys

import torch
import torch._dynamo  # the optimizers import it: once for all ranks
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from torch_reference import block, load_weights, make_optimizer, rope_tables


class Part(nn.Module):
    """Some of the decoder's parameters, which are sharded and gathered together, and what is computed with them."""

    def __init__(self, weights, compute):
        super().__init__()
        self.compute = compute
        self.names = list(weights)
        for name, weight in weights.items():
            self.register_parameter(name.replace(".", "_"), nn.Parameter(weight.detach().clone()))

    def weights(self):
        return {name: getattr(self, name.replace(".", "_")) for name in self.names}

    def forward(self, *inputs):
        return self.compute(self.weights(), *inputs)


class Decoder(nn.Module):
    def __init__(self, weights, spec):
        super().__init__()

        def part(prefix, compute):
            return Part({name: w for name, w in weights.items() if name.startswith(prefix + ".")}, compute)

        def layer(index):
            prefix = f"block.{index}"
            return part(prefix, lambda w, x, cos, sin: block(x, w, prefix, spec, cos, sin))

        def head(w, x):
            norm = w["head.norm.weight"]
            return F.linear(F.rms_norm(x, norm.shape, norm, spec["norm_eps"]), w["head.weight"])

        self.parts = nn.ModuleList([part("embedding", lambda w, tokens: F.embedding(tokens, w["embedding.weight"])),
                                    *(layer(index) for index in range(spec["layers"])), part("head", head)])

    def forward(self, tokens, cos, sin):
        embedding, *blocks, head = self.parts
        x = embedding(tokens)
        for one in blocks:
            x = one(x, cos, sin)
        return head(x)

    def weights(self):
        return {name: weight for part in self.parts for name, weight in part.weights().items()}


def shard(model, case):
    policy = MixedPrecisionPolicy()
    if case["precision"] == "bf16":
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for module in [*model.parts, model]:
        fully_shard(module, mp_policy=policy, reshard_after_forward=case["reshard"])


def write_weights(model, spec, path):
    """All ranks call it; rank 0 writes."""
    whole = {name: weight.detach().full_tensor() for name, weight in model.weights().items()}
    if dist.get_rank() == 0:
        flat = torch.cat([whole[name].float().flatten() for name, _ in spec["parameters"]])
        flat.numpy().tofile(path)


def train(case, spec, tokens):
    spec = {**spec, **case}
    model = Decoder(load_weights(spec, 0), spec)
    shard(model, case)
    optimizer = make_optimizer(model.weights(), spec)
    tables = rope_tables(spec)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    curve = {"losses": [], "norms": []}
    for step in range(spec["steps"]):
        rows = tokens[step].chunk(ranks)[rank]
        logits = model(rows[:, :-1], *tables)
        loss = F.cross_entropy(logits.flatten(0, 1).float(), rows[:, 1:].flatten())
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), spec["clip_norm"])
        for group in optimizer.param_groups:
            group["lr"] = spec["rates"][step]
        optimizer.step()
        optimizer.zero_grad()
        loss = loss.detach().double()
        dist.all_reduce(loss)
        curve["losses"].append(loss.item() / ranks)
        curve["norms"].append(norm.full_tensor().item())
        for when, at in (("first", 0), ("last", spec["steps"] - 1)):
            if step == at:
                write_weights(model, spec, os.path.join(spec["folder"], f"{case['name']}-{when}.bin"))
    return curve


def run_rank(rank, spec, results):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))  # for Gloo's threads: core/engine/gloo_device.h
    dist.init_process_group("gloo", init_method="file://" + os.path.join(spec["folder"], "store"), rank=rank,
                            world_size=spec["ranks"])
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    steps, rows, width = spec["steps"], spec["global_batch"], spec["sequence_length"] + 1
    tokens = torch.from_file(spec["tokens"], dtype=torch.int64, size=steps * rows * width).view(steps, rows, width)
    curves = {case["name"]: train(case, spec, tokens) for case in spec["cases"]}
    if rank == 0:
        results.put({"torch": torch.__version__, "cases": curves})
    dist.destroy_process_group()


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        spec = json.load(file)
    spec["device"] = "cpu"
    # Ranks are forks: PyTorch is imported once.
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    ranks = [context.Process(target=run_rank, args=(rank, spec, results)) for rank in range(spec["ranks"])]
    for one in ranks:
        one.start()
    for one in ranks:
        one.join()
    if any(one.exitcode for one in ranks):
        sys.exit(f"ranks ended with {[one.exitcode for one in ranks]}")
    print(json.dumps(results.get()))


if __name__ == "__main__":
    main()
