#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same trainings in PyTorch, for a test: given weights and tokens, some steps; prints losses and gradient norms.

    torch_reference.py SPECS.json

Specifications stand in a list, and so do the results. Each names a file of fp32 weights with an index of names and shapes (a set before each step, of which a
training takes the first), a file of int64 tokens [steps, sequences, length + 1], the model's sizes and the optimizer's
settings. Printed are trainings that differ in nothing but the number of parts in which a step's gradient is summed
("parts"), and each step's loss and norm at the weights given for it ("given"). Nothing of ours is imported: the decoder is
written here with PyTorch's own operators, under autograd.

bf16 is what FSDP2's MixedPrecisionPolicy(param_dtype=bfloat16, reduce_dtype=float32) does: fp32 masters, a bf16 copy for
forward and backward, gradients turned to fp32 before they are reduced. One thing is done better than there: the embedding's
gradient is summed in fp32. In bf16 a token that occurs a hundred times loses 6e-3 of it, which is PyTorch's error and not
what we want to compare with.

fp16 is the same in float16, with torch.amp.GradScaler: gradients are computed of the scaled loss, unscale_() gives the norm,
step() skips where one is not finite. "given" then has each step's scale, and whether it is skipped.
"""
import json
import sys

import torch
import torch.nn.functional as F


def load_weights(spec, step):
    count = spec["weight_elements"]
    flat = torch.from_file(spec["weights"], dtype=torch.float32, size=(step + 1) * count)[step * count:]
    weights, offset = {}, 0
    for name, shape in spec["parameters"]:
        count = torch.Size(shape).numel()
        weights[name] = flat[offset:offset + count].view(shape).to(spec["device"], copy=True).requires_grad_()
        offset += count
    return weights


def rope_tables(spec):
    size = spec["head_size"]
    inverse = 1.0 / spec["rope_theta"] ** (torch.arange(0, size, 2).float() / size)
    angles = torch.outer(torch.arange(spec["sequence_length"]).float(), inverse)
    angles = torch.cat([angles, angles], -1).to(spec["device"])  # half-split layout, as in Hugging Face's Llama
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    turned = torch.cat([-x[..., half:], x[..., :half]], -1)
    return x * cos.to(x.dtype) + turned * sin.to(x.dtype)


def block(x, w, prefix, spec, cos, sin):
    batch, length, _ = x.shape

    def norm(value, name):
        weight = w[f"{prefix}.{name}.weight"]
        return F.rms_norm(value, weight.shape, weight, spec["norm_eps"])

    def heads(value, name, count):
        product = F.linear(value, w[f"{prefix}.attention.{name}.weight"])
        return product.view(batch, length, count, spec["head_size"]).transpose(1, 2)

    y = norm(x, "attention_norm")
    q = rotate(heads(y, "q", spec["heads"]), cos, sin)
    k = rotate(heads(y, "k", spec["key_value_heads"]), cos, sin)
    v = heads(y, "v", spec["key_value_heads"])
    attention = F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                               enable_gqa=spec["heads"] != spec["key_value_heads"])
    attention = attention.transpose(1, 2).reshape(batch, length, -1)
    x = x + F.linear(attention, w[f"{prefix}.attention.o.weight"])
    y = norm(x, "ffn_norm")
    gated = F.silu(F.linear(y, w[f"{prefix}.ffn.gate.weight"])) * F.linear(y, w[f"{prefix}.ffn.up.weight"])
    return x + F.linear(gated, w[f"{prefix}.ffn.down.weight"])


def loss_of(tokens, w, embedding, spec, cos, sin):
    # Rounding after the look-up gives the same values as before it, and a gradient that is summed in fp32.
    x = F.embedding(tokens[:, :-1], embedding).to(w["embedding.weight"].dtype)
    for layer in range(spec["layers"]):
        x = block(x, w, f"block.{layer}", spec, cos, sin)
    norm = w["head.norm.weight"]
    head = w.get("head.weight", w["embedding.weight"])
    logits = F.linear(F.rms_norm(x, norm.shape, norm, spec["norm_eps"]), head)
    return F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())


def make_optimizer(masters, spec):
    groups = [
        {"params": [p for name, p in masters.items() if p.dim() > 1], "weight_decay": spec["weight_decay"]},
        {"params": [p for name, p in masters.items() if p.dim() == 1], "weight_decay": 0.0},
    ]
    if spec["optimizer"] == "adamw":
        return torch.optim.AdamW(groups, lr=1.0, betas=tuple(spec["betas"]), eps=spec["eps"])
    return torch.optim.SGD(groups, lr=1.0, momentum=spec["momentum"])


def norm_of(masters):
    return torch.linalg.vector_norm(torch.stack([p.grad.double().norm() for p in masters.values()])).item()


def gradients_of(tokens, masters, parts, dtype, spec, tables, scaler=None):
    """Sets each master's gradient, the mean of those of `parts` parts of the sequences; returns the loss and the norm."""
    for master in masters.values():
        master.grad = torch.zeros_like(master)
    total = 0.0
    for rows in tokens.chunk(parts):
        weights = {name: p.detach().to(dtype).requires_grad_() for name, p in masters.items()}
        embedding = masters["embedding.weight"].detach().requires_grad_()
        loss = loss_of(rows, weights, embedding, spec, *tables) / parts
        (scaler.scale(loss) if scaler else loss).backward()
        for name, master in masters.items():
            for p in (weights[name], embedding if name == "embedding.weight" else None):
                if p is not None and p.grad is not None:  # a tied embedding has both
                    master.grad += p.grad.float()
        total += loss.item()
    return total, norm_of(masters)


def given_with_scaler(tokens, spec, tables):
    """Losses and unscaled norms at the given weights, with the scales of a scaler that goes through all of them. Each rank's
    part of a step's sequences has its own products in fp16, which overflow later than one of all of them."""
    own = spec["scaler"]
    scaler = torch.amp.GradScaler(spec["device"], init_scale=own["initial"], growth_factor=own["growth_factor"],
                                  backoff_factor=own["backoff"], growth_interval=own["growth_interval"])
    result = {"losses": [], "norms": [], "scales": [], "skipped": []}
    for step in range(spec["steps"]):
        masters = load_weights(spec, step)
        optimizer = torch.optim.SGD(masters.values(), lr=0.0)
        loss, _ = gradients_of(tokens[step], masters, spec["ranks"], torch.float16, spec, tables, scaler)
        result["scales"].append(scaler.get_scale())
        scaler.unscale_(optimizer)
        norm = norm_of(masters)
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < result["scales"][-1]
        result["losses"].append(loss)
        result["norms"].append(None if skipped else norm)
        result["skipped"].append(skipped)
    return result


def train(tokens, parts, dtype, spec, tables):
    masters = load_weights(spec, 0)
    optimizer = make_optimizer(masters, spec)
    curve = []
    for step in range(spec["steps"]):
        curve.append(gradients_of(tokens[step], masters, parts, dtype, spec, tables))
        if spec["clip_norm"] > 0:
            for p in masters.values():
                p.grad.mul_(min(1.0, spec["clip_norm"] / curve[-1][1]))
        for group in optimizer.param_groups:
            group["lr"] = spec["rates"][step]
        optimizer.step()
    return curve


def as_columns(curve):
    losses, norms = zip(*curve)
    return {"losses": losses, "norms": norms}


def result_of(spec):
    spec.setdefault("device", "cpu")
    steps, rows, width = spec["steps"], spec["global_batch"], spec["sequence_length"] + 1
    tokens = torch.from_file(spec["tokens"], dtype=torch.int64, size=steps * rows * width).view(steps, rows, width)
    tokens = tokens.to(spec["device"])
    tables = rope_tables(spec)
    if spec["precision"] == "fp16":
        return {"torch": torch.__version__, "given": given_with_scaler(tokens, spec, tables)}
    dtype = torch.bfloat16 if spec["precision"] == "bf16" else torch.float32
    given = [gradients_of(tokens[step], load_weights(spec, step), 1, dtype, spec, tables) for step in range(steps)]
    trained = [as_columns(train(tokens, parts, dtype, spec, tables)) for parts in spec["parts"]]
    return {"torch": torch.__version__, "given": as_columns(given), "trained": trained}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        specs = json.load(file)
    torch.set_num_threads(1)
    print(json.dumps([result_of(spec) for spec in specs]))


if __name__ == "__main__":
    main()
