# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own FSDP2 (or DDP) training the same Llama-shaped decoder: the peer to measure against.

One process a rank; RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT come from the environment, as
torchrun sets them.  Rank 0 prints one JSON line with step times, tokens/s, peak memory and losses.

    RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 \
        python3 torch_fsdp.py --size 1b3 --steps 20 --strategy full --compile

Several ranks on one GPU through the real NCCL: give each rank another NCCL_HOSTID and set
NCCL_SOCKET_IFNAME=lo (tests/bench/peer_bench.py does).
"""
import argparse, json, os, statistics, time
import torch, torch.nn as nn, torch.nn.functional as F, torch.distributed as dist

SIZES = {  # dim, layers, heads, ffn hidden, vocabulary
    "tiny": (128, 4, 4, 384, 512),
    "15m": (288, 6, 6, 768, 32000),
    "124m": (768, 12, 12, 2048, 50304),
    "350m": (1024, 24, 16, 2816, 32000),
    "1b3": (2048, 24, 16, 5632, 32000),
    "2b7": (2560, 32, 20, 6912, 32000),
    "6b7": (4096, 32, 32, 11008, 32000),
}


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(dim)), eps

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight, self.eps)


def rope_table(head_dim, seq, device, base=10000.0):
    inv = 1.0 / base ** (torch.arange(0, head_dim, 2, device=device).float() / head_dim)
    ang = torch.outer(torch.arange(seq, device=device).float(), inv)
    ang = torch.cat([ang, ang], -1)  # half-split layout, as in Hugging Face Llama
    return ang.cos(), ang.sin()


def apply_rope(x, cos, sin):
    h = x.shape[-1] // 2
    rot = torch.cat([-x[..., h:], x[..., :h]], -1)
    return x * cos.to(x.dtype) + rot * sin.to(x.dtype)


class Block(nn.Module):
    def __init__(self, dim, heads, hidden):
        super().__init__()
        self.heads = heads
        self.attention_norm, self.ffn_norm = RMSNorm(dim), RMSNorm(dim)
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        self.gate, self.up = nn.Linear(dim, hidden, bias=False), nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x, cos, sin):
        b, t, d = x.shape
        y = self.attention_norm(x)
        q, k, v = (m(y).view(b, t, self.heads, -1).transpose(1, 2) for m in (self.q, self.k, self.v))
        q, k = apply_rope(q, cos, sin), apply_rope(k, cos, sin)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, d))
        y = self.ffn_norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, dim, layers, heads, hidden, vocab):
        super().__init__()
        self.head_dim = dim // heads
        self.embedding = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(Block(dim, heads, hidden) for _ in range(layers))
        self.norm, self.lm_head = RMSNorm(dim), nn.Linear(dim, vocab, bias=False)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens, cos, sin):
        x = self.embedding(tokens)
        for b in self.blocks:
            x = b(x, cos, sin)
        return self.lm_head(self.norm(x))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--size", choices=SIZES, default="tiny")
    ap.add_argument("--steps", type=int, default=10)
    ap.add_argument("--warmup", type=int, default=3)
    ap.add_argument("--batch", type=int, default=4, help="sequences a rank and step")
    ap.add_argument("--seq", type=int, default=2048)
    ap.add_argument("--strategy", choices=["full", "grad_op", "ddp", "none", "hybrid"], default="full")
    ap.add_argument("--shard-group", type=int, default=2, help="hybrid: so many ranks share a replica (FSDP2's 2-D mesh)")
    ap.add_argument("--backend", choices=["nccl", "gloo"], default="nccl")
    ap.add_argument("--dtype", choices=["bf16", "fp16", "fp32"], default="bf16", help="fp16: with torch.amp.GradScaler")
    ap.add_argument("--clip", type=float, default=0, metavar="NORM", help="clip the whole gradient's norm; 0: don't")
    ap.add_argument("--checkpoint", action="store_true", help="recompute every block's activations")
    ap.add_argument("--offload", action="store_true", help="FSDP2 CPU offload")
    ap.add_argument("--compile", action="store_true")
    ap.add_argument("--lr", type=float, default=3e-4)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--profile", help="folder for a Kineto trace of two steps and a memory snapshot, a file a rank")
    ap.add_argument("--onednn-fp32", action="store_true", help="fp32 products on the CPU by oneDNN, as shardscope-worker's")
    ap.add_argument("--data", help="raw little-endian uint16 tokens; random tokens without it")
    a = ap.parse_args()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    cuda = a.backend == "nccl"
    dev = torch.device("cuda", int(os.environ.get("LOCAL_DEVICE", "0"))) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(dev)
    else:
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        if a.onednn_fp32:
            torch.backends.mkldnn.matmul.fp32_precision = "bf16"  # allowed, and not taken without AMX
    dist.init_process_group(a.backend, rank=rank, world_size=world)
    torch.manual_seed(a.seed)
    half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(a.dtype)
    dim, layers, heads, hidden, vocab = SIZES[a.size]
    with dev:  # there at once: drawing 6b7's weights on the host takes minutes
        model = Llama(dim, layers, heads, hidden, vocab)
    n_params = sum(p.numel() for p in model.parameters())
    cos, sin = rope_table(model.head_dim, a.seq, dev)

    if a.checkpoint:
        from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
        for i, b in enumerate(model.blocks):
            model.blocks[i] = checkpoint_wrapper(b)
    if a.compile:
        for b in model.blocks:
            b.compile()
    if a.strategy in ("full", "grad_op", "hybrid"):
        from torch.distributed.fsdp import fully_shard, MixedPrecisionPolicy, CPUOffloadPolicy
        kw = dict(reshard_after_forward=a.strategy != "grad_op")
        if a.strategy == "hybrid":
            from torch.distributed.device_mesh import init_device_mesh
            kw["mesh"] = init_device_mesh(dev.type, (world // a.shard_group, a.shard_group), mesh_dim_names=("replicate", "shard"))
        if half:
            kw["mp_policy"] = MixedPrecisionPolicy(param_dtype=half, reduce_dtype=torch.float32)
        if a.offload:
            kw["offload_policy"] = CPUOffloadPolicy()
        for b in model.blocks:
            fully_shard(b, **kw)
        fully_shard(model, **kw)
    elif a.strategy == "ddp":
        model = nn.parallel.DistributedDataParallel(model, device_ids=[dev.index] if cuda else None)
    opt = torch.optim.AdamW(model.parameters(), lr=a.lr, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    scaler = torch.amp.GradScaler(dev.type, enabled=a.dtype == "fp16")

    gen = torch.Generator().manual_seed(1234 + rank)
    tokens = None
    if a.data:
        tokens = torch.from_file(a.data, dtype=torch.int16, size=os.path.getsize(a.data) // 2)

    def batch(step):
        if tokens is None:
            t = torch.randint(0, vocab, (a.batch, a.seq + 1), generator=gen)
        else:  # contiguous windows, strided by rank
            n = a.seq + 1
            rows = [(step * world * a.batch + rank * a.batch + i) * a.seq % (tokens.numel() - n) for i in range(a.batch)]
            t = torch.stack([tokens[r:r + n] for r in rows]).long() & 0xFFFF
        return t.to(dev, non_blocking=True)

    sync = torch.cuda.synchronize if cuda else (lambda: None)
    autocast = a.strategy in ("ddp", "none") and half is not None
    times, losses = [], []
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    prof = None
    for step in range(a.warmup + a.steps):
        if a.profile and step == a.warmup + a.steps - 2:
            from torch.profiler import profile, ProfilerActivity
            if cuda:
                torch.cuda.memory._record_memory_history(max_entries=200000)
            acts = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if cuda else [])
            prof = profile(activities=acts, record_shapes=True, profile_memory=True)
            prof.start()
        t = batch(step)
        sync(); t0 = time.perf_counter()
        with torch.autocast(dev.type, half, enabled=autocast):
            logits = model(t[:, :-1], cos, sin)
            loss = F.cross_entropy(logits.flatten(0, 1).float(), t[:, 1:].flatten())
        scaler.scale(loss).backward()
        if a.clip > 0:
            scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(model.parameters(), a.clip)
        scaler.step(opt); scaler.update(); opt.zero_grad(set_to_none=True)
        sync(); dt = time.perf_counter() - t0
        if step >= a.warmup:
            times.append(dt)
        losses.append(loss.detach())
    if prof:
        prof.stop()
        os.makedirs(a.profile, exist_ok=True)
        prof.export_chrome_trace(f"{a.profile}/rank{rank}.json.gz")
        if cuda:
            torch.cuda.memory._dump_snapshot(f"{a.profile}/rank{rank}_memory.pickle")
    losses = torch.stack(losses).cpu()
    if not cuda:
        import resource
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    else:
        peak = torch.cuda.max_memory_allocated()
    med = statistics.median(times)
    if rank == 0:
        print(json.dumps(dict(peer="torch " + torch.__version__, size=a.size, params=n_params, world=world,
              strategy=a.strategy, backend=a.backend, dtype=a.dtype, checkpoint=a.checkpoint, clip=a.clip,
              loss_scale=scaler.get_scale() if scaler.is_enabled() else None, offload=a.offload, compile=a.compile, batch=a.batch, seq=a.seq,
              step_ms_median=round(med * 1e3, 3), step_ms_min=round(min(times) * 1e3, 3),
              step_ms=[round(t * 1e3, 3) for t in times],
              tokens_per_s_rank=round(a.batch * a.seq / med, 1), peak_bytes=peak,
              losses=[round(x, 5) for x in losses.tolist()])), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
