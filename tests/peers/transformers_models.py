#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small random models of Hugging Face's own classes, and their logits, for a test.

    transformers_models.py make FOLDER [CASE...]     FOLDER/<case>/model with config.json and safetensors, tokens and logits beside it
    transformers_models.py check FOLDER [CASE...]    opens FOLDER/<case>/export, which we wrote, and compares its logits with the first; where
                                                     there is FOLDER/<case>/adapter, which we wrote, it is put on the model as peft
                                                     does, and compared with the export, into which it is merged

check prints one line a case: its name and the largest difference of a logit, or what transformers found missing. Weights,
biases and norms are all drawn at random, so that none can be left out unnoticed.
"""
import json
import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
from safetensors.torch import load_file
from transformers import (AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, Qwen2Config,
                          Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM)

SIZES = dict(vocab_size=97, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, bos_token_id=None, eos_token_id=None, pad_token_id=None)
SEQUENCES, TOKENS = 2, 40


def rope(kind, **more):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 20000.0, **more}}


def sliding(*types):
    names = {"s": "sliding_attention", "f": "full_attention"}
    return dict(use_sliding_window=True, sliding_window=7, layer_types=[names[t] for t in types])


LLAMA3 = rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
YARN = rope("yarn", factor=4.0, original_max_position_embeddings=16)
CASES = {
    "llama": (LlamaConfig, LlamaForCausalLM, {}),
    "llama_tied": (LlamaConfig, LlamaForCausalLM, {"tie_word_embeddings": True}),
    "llama_biases": (LlamaConfig, LlamaForCausalLM, {"attention_bias": True, "mlp_bias": True}),
    "llama_wide_heads": (LlamaConfig, LlamaForCausalLM, {"head_dim": 20, "rms_norm_eps": 1e-3}),
    "llama_llama3": (LlamaConfig, LlamaForCausalLM, LLAMA3),
    "llama_linear": (LlamaConfig, LlamaForCausalLM, rope("linear", factor=4.0)),
    "llama_dynamic": (LlamaConfig, LlamaForCausalLM, {**rope("dynamic", factor=4.0), "max_position_embeddings": 16}),
    "llama_yarn": (LlamaConfig, LlamaForCausalLM, YARN),
    "mistral": (MistralConfig, MistralForCausalLM, {"sliding_window": None}),
    "mistral_window": (MistralConfig, MistralForCausalLM, {"sliding_window": 7}),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM, {"tie_word_embeddings": True}),
    "qwen2_window": (Qwen2Config, Qwen2ForCausalLM, sliding("f", "s", "s")),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM, {"head_dim": 32}),
    "qwen3_everything": (Qwen3Config, Qwen3ForCausalLM,
                         {"head_dim": 10, "attention_bias": True, "tie_word_embeddings": True, **YARN,
                          **sliding("s", "f", "s")}),
}


def logits_of(model, tokens):
    with torch.no_grad():
        return model.eval()(tokens, use_cache=False).logits.float().contiguous()


def make(folder, cases):
    for number, (case, (config_class, model_class, more)) in enumerate(CASES.items()):
        if case not in cases:
            continue
        torch.manual_seed(number)
        model = model_class._from_config(config_class(**{**SIZES, **more}), attn_implementation="eager")
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.normal_(1.0 if "norm" in name else 0.0, 0.1)
        place = os.path.join(folder, case)
        # Every second one in shards.
        model.save_pretrained(os.path.join(place, "model"), max_shard_size="60KB" if number % 2 else "1GB")
        tokens = torch.randint(0, SIZES["vocab_size"], (SEQUENCES, TOKENS))
        tokens.numpy().tofile(os.path.join(place, "tokens"))
        logits_of(model, tokens).numpy().tofile(os.path.join(place, "logits"))
        print(case, flush=True)


def opened(folder, case, name, **more):
    return AutoModelForCausalLM.from_pretrained(os.path.join(folder, case, name), dtype=torch.float32,
                                                attn_implementation="eager", **more)


def put_on(model, adapter):
    """peft's LoraConfig and names of tensors (peft/tuners/lora, peft/utils/save_and_load.py)."""
    with open(os.path.join(adapter, "adapter_config.json")) as file:
        config = json.load(file)
    tensors = load_file(os.path.join(adapter, "adapter_model.safetensors"))
    targets = config["target_modules"]
    for name, module in model.named_modules():
        if any(name == target or name.endswith("." + target) for target in targets):
            a = tensors.pop(f"base_model.model.{name}.lora_A.weight")
            b = tensors.pop(f"base_model.model.{name}.lora_B.weight")
            assert a.shape[0] == b.shape[1] == config["r"]
            module.weight.data += config["lora_alpha"] / config["r"] * (b @ a)
    return tensors


def adapted(folder, case, tokens):
    model = opened(folder, case, "model")
    before = logits_of(model, tokens)
    left = put_on(model, os.path.join(folder, case, "adapter"))
    logits = logits_of(model, tokens)
    assert not left, f"not used: {list(left)}"
    assert (logits - before).abs().max() > 1e-2, "the adapter changes nothing"
    return logits


def check(folder, cases):
    for case in cases:
        place = os.path.join(folder, case)
        model, info = opened(folder, case, "export", output_loading_info=True)
        wrong = {key: value for key, value in info.items() if value}
        tokens = torch.from_file(os.path.join(place, "tokens"), dtype=torch.int64, size=SEQUENCES * TOKENS)
        tokens = tokens.view(SEQUENCES, TOKENS)
        if os.path.isdir(os.path.join(place, "adapter")):
            logits = adapted(folder, case, tokens)
        else:
            logits = torch.from_file(os.path.join(place, "logits"), size=SEQUENCES * TOKENS * SIZES["vocab_size"])
        error = (logits_of(model, tokens).flatten() - logits.flatten()).abs().max().item()
        print(case, wrong if wrong else error, flush=True)


if __name__ == "__main__":
    {"make": make, "check": check}[sys.argv[1]](sys.argv[2], sys.argv[3:] or list(CASES))
