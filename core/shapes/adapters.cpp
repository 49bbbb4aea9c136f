// SPDX-License-Identifier: Apache-2.0
#include "core/shapes/adapters.h"

#include "core/base/text.h"
#include "core/shapes/hf_names.h"

#include <algorithm>
#include <fnmatch.h>

namespace shardscope::shapes {

static constexpr std::string_view kWeight = ".weight";
static constexpr std::string_view kTiedHead = "head.weight";

static std::string withoutWeight(std::string name)
{
    if (name.ends_with(kWeight))
        name.resize(name.size() - kWeight.size());
    return name;
}

static bool matchesTarget(const std::string &pattern, const std::string &name)
{
    const std::string atDot = "*." + pattern;
    for (const std::string &full : {name, hfNameOf(name)}) {
        for (const std::string &text : {full, withoutWeight(full)}) {
            if (fnmatch(pattern.c_str(), text.c_str(), 0) == 0 || fnmatch(atDot.c_str(), text.c_str(), 0) == 0)
                return true;
        }
    }
    return false;
}

/// What targets may be called: "attention.q", "ffn.down", "head", each once.
static std::vector<std::string> targetNames(const std::vector<UnitShape> &units)
{
    std::vector<std::string> names;
    for (const UnitShape &unit : units) {
        for (const ParameterShape &parameter : unit.parameters) {
            std::string name = withoutWeight(parameter.name);
            if (unit.kind == UnitKind::Block)
                name.erase(0, unit.name.size() + 1);
            if (parameter.kind == ParameterKind::Linear && std::ranges::find(names, name) == names.end())
                names.push_back(std::move(name));
        }
    }
    return names;
}

/// Why a target gives no adapter.
static tl::unexpected<Error> refuseTarget(const std::string &target, const std::vector<UnitShape> &units)
{
    const std::vector<std::string> names = targetNames(units);
    const std::string there = fmt::format("Linear weights are: {}.", fmt::join(names, ", "));
    for (const UnitShape &unit : units) {
        for (const ParameterShape &parameter : unit.parameters) {
            if (matchesTarget(target, parameter.name))
                return fail(
                    "lora.targets: \"{}\" matches {}, which is no linear weight, and only those get adapters. {}",
                    target, parameter.name, there);
        }
    }
    if (matchesTarget(target, std::string(kTiedHead)))
        return fail(
            "lora.targets: \"{}\" is the head, which uses the embedding's weight in this model: an adapter would "
            "part them. {}",
            target, there);
    const auto nearest = nearestName(target, names);
    return fail("lora.targets: no parameter matches \"{}\".{} {}", target,
                nearest ? fmt::format(" Did you mean {}?", *nearest) : "", there);
}

static void addAdapter(UnitShape &unit, size_t weight, int64_t rank)
{
    const ParameterShape &adapted = unit.parameters[weight];
    const std::string name = withoutWeight(adapted.name);
    ParameterShape a{name + ".lora_a.weight", {rank, adapted.sizes[1]}};
    a.adapter = AdapterPart::A;
    ParameterShape b{name + ".lora_b.weight", {adapted.sizes[0], rank}};
    b.adapter = AdapterPart::B;
    for (ParameterShape *part : {&a, &b}) {
        part->adapts = weight;
        unit.parameters.push_back(std::move(*part));
    }
}

Result<std::vector<UnitShape>> withAdapters(std::vector<UnitShape> units, const config::RunConfiguration &configuration)
{
    const auto &lora = configuration.lora;
    if (lora.rank == 0)
        return units;
    const auto isTarget = [](const ParameterShape &parameter, const std::string &target) {
        return parameter.kind == ParameterKind::Linear && matchesTarget(target, parameter.name);
    };
    for (const std::string &target : lora.targets) {
        const bool isUsed = std::ranges::any_of(units, [&](const UnitShape &unit) {
            return std::ranges::any_of(unit.parameters, [&](const auto &one) { return isTarget(one, target); });
        });
        if (!isUsed)
            return refuseTarget(target, units);
    }
    for (UnitShape &unit : units) {
        const size_t count = unit.parameters.size();
        for (size_t i = 0; i < count; ++i) {
            const ParameterShape &parameter = unit.parameters[i];
            if (std::ranges::any_of(lora.targets, [&](const auto &target) { return isTarget(parameter, target); }))
                addAdapter(unit, i, lora.rank);
        }
    }
    return units;
}

double adapterAlpha(const config::RunConfiguration &configuration)
{
    const auto &lora = configuration.lora;
    return lora.alpha == 0 ? static_cast<double>(lora.rank) : lora.alpha;
}

double adapterScale(const config::RunConfiguration &configuration)
{
    const int64_t rank = configuration.lora.rank;
    return rank == 0 ? 0 : adapterAlpha(configuration) / static_cast<double>(rank);
}

} // namespace shardscope::shapes
