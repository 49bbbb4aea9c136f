// SPDX-License-Identifier: Apache-2.0
#include "core/shapes/hf_names.h"

#include <algorithm>
#include <fmt/format.h>
#include <span>

namespace shardscope::shapes {

namespace {

struct NamePair
{
    std::string_view here;
    std::string_view there;
};

constexpr NamePair kWhole[] = {
    {"embedding.weight", "model.embed_tokens.weight"},
    {"head.norm.weight", "model.norm.weight"},
    {"head.weight", "lm_head.weight"},
};
constexpr std::string_view kBlockHere = "block.";
constexpr std::string_view kBlockThere = "model.layers.";
constexpr NamePair kInBlock[] = {
    {"attention_norm.weight", "input_layernorm.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"attention.q_norm.weight", "self_attn.q_norm.weight"},
    {"attention.k_norm.weight", "self_attn.k_norm.weight"},
    {"attention.q.weight", "self_attn.q_proj.weight"},
    {"attention.k.weight", "self_attn.k_proj.weight"},
    {"attention.v.weight", "self_attn.v_proj.weight"},
    {"attention.o.weight", "self_attn.o_proj.weight"},
    {"attention.q.bias", "self_attn.q_proj.bias"},
    {"attention.k.bias", "self_attn.k_proj.bias"},
    {"attention.v.bias", "self_attn.v_proj.bias"},
    {"attention.o.bias", "self_attn.o_proj.bias"},
    {"ffn.gate.weight", "mlp.gate_proj.weight"},
    {"ffn.up.weight", "mlp.up_proj.weight"},
    {"ffn.down.weight", "mlp.down_proj.weight"},
    {"ffn.gate.bias", "mlp.gate_proj.bias"},
    {"ffn.up.bias", "mlp.up_proj.bias"},
    {"ffn.down.bias", "mlp.down_proj.bias"},
};

using Side = std::string_view NamePair::*;

std::optional<std::string> translated(std::string_view name, Side from, Side to, std::string_view blockFrom,
                                      std::string_view blockTo)
{
    if (const auto found = std::ranges::find(kWhole, name, from); found != std::end(kWhole))
        return std::string((*found).*to);
    if (!name.starts_with(blockFrom))
        return std::nullopt;
    name.remove_prefix(blockFrom.size());
    const size_t dot = name.find('.');
    const std::string_view index = name.substr(0, dot);
    const auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
    if (dot == std::string_view::npos || index.empty() || !std::ranges::all_of(index, isDigit))
        return std::nullopt;
    const auto found = std::ranges::find(kInBlock, name.substr(dot + 1), from);
    if (found == std::end(kInBlock))
        return std::nullopt;
    return fmt::format("{}{}.{}", blockTo, index, (*found).*to);
}

} // namespace

std::string hfNameOf(std::string_view name)
{
    return translated(name, &NamePair::here, &NamePair::there, kBlockHere, kBlockThere).value_or("");
}

std::optional<std::string> nameOfHf(std::string_view hfName)
{
    return translated(hfName, &NamePair::there, &NamePair::here, kBlockThere, kBlockHere);
}

} // namespace shardscope::shapes
