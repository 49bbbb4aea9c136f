#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bus bandwidth of NCCL's all-gather and reduce-scatter over the GPUs of one host, as nccl-tests define it (bytes of the
whole result, or of the whole input, × (n - 1) / n ÷ time), beside what a copy from one card to another moves.

    tests/gpu/bandwidth.py [--gpus 2] [--mib 256]
"""
import argparse
import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def timed(work, times=20):
    """Seconds of one call, over several after a warm-up."""
    for _ in range(5):
        work()
    torch.cuda.synchronize()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(times):
        work()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1e3 / times


def worker(rank, gpus, size, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=gpus)
    whole = torch.ones(size // 2, dtype=torch.bfloat16, device="cuda")
    part = torch.ones(size // 2 // gpus, dtype=torch.bfloat16, device="cuda")
    gather = timed(lambda: dist.all_gather_into_tensor(whole, part))
    wide = torch.ones(size // 4, device="cuda")
    slice_ = torch.empty(size // 4 // gpus, device="cuda")
    scatter = timed(lambda: dist.reduce_scatter_tensor(slice_, wide))
    share = (gpus - 1) / gpus
    if rank == 0:
        other = torch.empty_like(whole, device="cuda:1")
        copy = timed(lambda: other.copy_(whole, non_blocking=True))
        print(f"{gpus} GPUs, {size >> 20} MiB: all-gather (bf16) {size * share / gather / 1e9:.0f} GB/s, reduce-scatter (fp32) "
              f"{size * share / scatter / 1e9:.0f} GB/s bus bandwidth; a copy from card 0 to card 1 {size / copy / 1e9:.0f} GB/s")
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--mib", type=int, default=256)
    options = parser.parse_args()
    if torch.cuda.device_count() < max(2, options.gpus):
        sys.exit(f"This machine has {torch.cuda.device_count()} GPUs.")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, (options.gpus, options.mib << 20, port), nprocs=options.gpus)


if __name__ == "__main__":
    main()
