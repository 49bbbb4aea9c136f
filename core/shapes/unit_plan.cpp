// SPDX-License-Identifier: Apache-2.0
#include "core/shapes/unit_plan.h"

#include "core/base/text.h"
#include "core/config/registry.h"
#include "core/shapes/adapters.h"

#include <algorithm>
#include <fnmatch.h>
#include <map>
#include <ranges>

namespace shardscope::shapes {

using config::RunConfiguration;
using config::UnitRule;

bool matches(const UnitRule &rule, const ParameterShape &parameter)
{
    return (!rule.kind || *rule.kind == parameter.kind) && parameter.elements() >= rule.minParameters &&
           fnmatch(rule.match.c_str(), parameter.name.c_str(), 0) == 0;
}

bool isOfBlocks(std::string_view key)
{
    return key == "memory.recompute" || key == "memory.activation_offload";
}

namespace {

/// Keys of a unit's computation; all others are of a bucket.
constexpr std::string_view kUnitKeys[] = {"memory.recompute", "memory.activation_offload", "parallel.prefetch"};

bool isUnitKey(std::string_view key)
{
    return std::ranges::find(kUnitKeys, key) != std::end(kUnitKeys);
}

enum class Cover { None, Part, Whole };

template <typename Parameters>
Cover coverOf(const UnitRule &rule, const Parameters &parameters)
{
    const auto count = std::ranges::count_if(parameters, [&](const auto &p) { return matches(rule, p); });
    return count == 0 ? Cover::None : count == static_cast<int64_t>(parameters.size()) ? Cover::Whole : Cover::Part;
}

std::vector<ParameterShape> parametersOf(const UnitPlan &unit, const BucketPlan &bucket)
{
    std::vector<ParameterShape> parameters;
    for (const size_t index : bucket.parameters)
        parameters.push_back(unit.shape.parameters[index]);
    return parameters;
}

/// The run's configuration with what the rules set for one thing; rules whose `applies` is false are passed over.
template <typename Applies>
Result<RunConfiguration> overlaid(const RunConfiguration &configuration, Applies applies, bool unitKeys)
{
    RunConfiguration own = configuration;
    for (const UnitRule &rule : configuration.units) {
        if (!applies(rule))
            continue;
        for (const UnitRule::Setting &setting : rule.settings) {
            if (isUnitKey(setting.key) != unitKeys)
                continue;
            if (auto set = config::setKey(own, setting.key, setting.value); !set)
                return tl::unexpected(set.error());
        }
    }
    return own;
}

BucketSettings bucketSettings(const RunConfiguration &configuration, int64_t worldSize)
{
    BucketSettings settings;
    settings.strategy = configuration.parallel.strategy;
    const int64_t half = worldSize % 2 == 0 ? worldSize / 2 : worldSize;
    switch (settings.strategy) {
    case Strategy::Full:
    case Strategy::GradOp:
        settings.shardGroup = worldSize;
        break;
    case Strategy::None:
        settings.shardGroup = 1;
        break;
    case Strategy::Hybrid:
        settings.shardGroup = configuration.parallel.shardGroup ? configuration.parallel.shardGroup : half;
        break;
    }
    settings.reshardGroup = settings.shardGroup;
    if (settings.reshardsAfterForward() && configuration.parallel.reshardGroup != 0)
        settings.reshardGroup = std::min(configuration.parallel.reshardGroup, settings.shardGroup);
    settings.offloadParameters = configuration.offload.parameters;
    settings.offloadGradients = configuration.offload.gradients;
    settings.offloadOptimizer = configuration.offload.optimizer;
    return settings;
}

Result<> checkBucket(const BucketPlan &bucket, int64_t worldSize)
{
    const BucketSettings &settings = bucket.settings;
    if (worldSize % settings.shardGroup != 0)
        return fail("{}: a shard group of {} doesn't divide the {} ranks.", bucket.name, settings.shardGroup,
                    worldSize);
    if (settings.shardGroup % settings.reshardGroup != 0)
        return fail("{}: a reshard group of {} doesn't divide the {} ranks that share a copy.", bucket.name,
                    settings.reshardGroup, settings.shardGroup);
    return {};
}

/// "norm" of a rule on a kind, else what its pattern says behind the unit: "block.*.attention.q.*" → "attention.q".
std::string labelOf(const UnitRule &rule, const std::string &unit)
{
    if (rule.kind)
        return std::string(toText(*rule.kind));
    std::string label = rule.match;
    for (const std::string_view part : {".weight", ".bias", ".*", "*"}) {
        if (label.ends_with(part))
            label.resize(label.size() - part.size());
    }
    if (const size_t star = label.rfind("*."); star != std::string::npos)
        label.erase(0, star + 2);
    if (label.starts_with(unit + "."))
        label.erase(0, unit.size() + 1);
    return label.empty() ? "apart" : label;
}

/// "block.3", "block.3/norm" of what a rule sets apart; of adapters "block.3/lora" and "block.3/lora.norm".
std::string bucketName(const std::string &unit, bool adapters, const UnitRule *rule)
{
    std::string label = rule ? labelOf(*rule, unit) : "";
    if (!adapters)
        return rule ? unit + "/" + label : unit;
    // "attention.q.lora_b" of a rule for "*.attention.q.lora_b.*" says it once more.
    if (const size_t own = label.find("lora_"); own != std::string::npos)
        label.resize(own == 0 ? 0 : own - 1);
    return unit + "/lora" + (label.empty() ? "" : "." + label);
}

/// Cuts a unit's parameters into buckets: one for each set of rules that are about a part of the unit, and adapters
/// apart from all else, which is frozen.
void formBuckets(UnitPlan &unit, const std::vector<UnitRule> &rules)
{
    const std::vector<ParameterShape> &parameters = unit.shape.parameters;
    // Adapters or not, and rules → parameters; what no rule sets apart comes first.
    std::map<std::pair<bool, std::vector<size_t>>, std::vector<size_t>> groups;
    for (size_t index = 0; index < parameters.size(); ++index) {
        std::vector<size_t> parting;
        for (size_t r = 0; r < rules.size(); ++r) {
            const bool isApart = rules[r].wrap || coverOf(rules[r], parameters) == Cover::Part;
            if (isApart && matches(rules[r], parameters[index]))
                parting.push_back(r);
        }
        groups[{parameters[index].adapter != AdapterPart::None, parting}].push_back(index);
    }
    std::map<std::string, int> used;
    for (auto &[key, indices] : groups) {
        const auto &[adapters, parting] = key;
        BucketPlan bucket;
        bucket.name = bucketName(unit.shape.name, adapters, parting.empty() ? nullptr : &rules[parting.back()]);
        if (const int before = used[bucket.name]++; before > 0)
            bucket.name += fmt::format(".{}", before + 1);
        bucket.parameters = std::move(indices);
        unit.buckets.push_back(std::move(bucket));
    }
}

/// Everything of a bucket that is fixed for the run.
void fixBucket(BucketPlan &bucket, const UnitPlan &unit, const RunConfiguration &configuration)
{
    const ParameterShape &first = unit.shape.parameters[bucket.parameters.front()];
    bucket.frozen = configuration.lora.rank > 0 && first.adapter == AdapterPart::None;
    for (const UnitRule &rule : configuration.units) {
        if (!matches(rule, first))
            continue;
        bucket.frozen = rule.frozen.value_or(bucket.frozen);
        // Embedding and head are one operation each: all that is theirs is used at once, and gathered with them.
        bucket.wrapped = bucket.wrapped || (rule.wrap && unit.shape.kind == UnitKind::Block);
    }
}

bool isIgnored(const std::vector<UnitRule> &rules, const ParameterShape &parameter)
{
    bool ignored = false;
    for (const UnitRule &rule : rules) {
        if (matches(rule, parameter))
            ignored = rule.ignore.value_or(ignored);
    }
    return ignored;
}

Result<> settleBucket(BucketPlan &bucket, const UnitPlan &unit, const RunConfiguration &configuration,
                      int64_t worldSize)
{
    const std::vector<ParameterShape> parameters = parametersOf(unit, bucket);
    for (const UnitRule &rule : configuration.units) {
        if (coverOf(rule, parameters) == Cover::Part)
            return fail(
                "A rule for \"{}\" is about a part of {}. Buckets are made when a run starts; this one holds {}.",
                rule.match, bucket.name, fmt::join(parameters | std::views::transform(&ParameterShape::name), ", "));
    }
    const auto own = overlaid(
        configuration, [&](const UnitRule &rule) { return matches(rule, parameters.front()); }, false);
    if (!own)
        return tl::unexpected(own.error());
    bucket.settings = bucketSettings(*own, worldSize);
    if (isIgnored(configuration.units, parameters.front())) {
        bucket.settings = {};
        bucket.settings.strategy = Strategy::None;
    }
    return checkBucket(bucket, worldSize);
}

Result<> settleUnit(UnitPlan &unit, const RunConfiguration &configuration, int64_t block)
{
    for (const UnitRule &rule : configuration.units) {
        const auto setting = std::ranges::find_if(rule.settings, [](const auto &one) { return isUnitKey(one.key); });
        if (setting != rule.settings.end() && coverOf(rule, unit.shape.parameters) == Cover::Part)
            return fail("{} is of whole units, and the rule for \"{}\" is about a part of {}.", setting->key,
                        rule.match, unit.shape.name);
    }
    const auto own = overlaid(
        configuration, [&](const UnitRule &rule) { return coverOf(rule, unit.shape.parameters) == Cover::Whole; },
        true);
    if (!own)
        return tl::unexpected(own.error());
    const bool isBlock = unit.shape.kind == UnitKind::Block;
    const bool isDue = isBlock && block % own->memory.recomputeEvery == 0;
    unit.settings.recompute = isDue ? own->memory.recompute : Recompute::Off;
    unit.settings.activationOffload = isBlock && own->memory.activationOffload;
    unit.settings.prefetch = own->parallel.prefetch;
    return {};
}

/// What would be set and change nothing.
Result<> checkBlockKeys(const ModelPlan &plan, const UnitRule &rule)
{
    const auto setting = std::ranges::find_if(rule.settings, [](const auto &one) { return isOfBlocks(one.key); });
    const bool isOfABlock = std::ranges::any_of(plan.units, [&](const UnitPlan &unit) {
        return unit.shape.kind == UnitKind::Block && coverOf(rule, unit.shape.parameters) != Cover::None;
    });
    if (setting == rule.settings.end() || isOfABlock)
        return {};
    return fail(
        "{} is of blocks, and the [[unit]] rule for \"{}\" matches none: it would change nothing. Leave it out, "
        "or choose blocks, such as by \"block.*\".",
        setting->key, rule.match);
}

/// A rule that matches nothing is a slip of the pen, and would be passed over without a word.
Result<> checkRules(const ModelPlan &plan, const std::vector<UnitRule> &rules)
{
    for (const UnitRule &rule : rules) {
        const bool isUsed = std::ranges::any_of(
            plan.units, [&](const UnitPlan &unit) { return coverOf(rule, unit.shape.parameters) != Cover::None; });
        if (!isUsed)
            return fail("No parameter matches the [[unit]] rule for \"{}\"{}{}. Names are such as {}, {} and {}.",
                        rule.match, rule.kind ? fmt::format(" of kind {}", toText(*rule.kind)) : "",
                        rule.minParameters > 0 ? fmt::format(" of at least {} elements", rule.minParameters) : "",
                        plan.units.front().shape.parameters.front().name,
                        plan.units[plan.units.size() / 2].shape.parameters.front().name,
                        plan.units.back().shape.parameters.back().name);
        if (auto meant = checkBlockKeys(plan, rule); !meant)
            return meant;
    }
    return {};
}

Result<> settle(ModelPlan &plan, const RunConfiguration &configuration)
{
    if (auto used = checkRules(plan, configuration.units); !used)
        return used;
    const auto &parallel = configuration.parallel;
    plan.pass = {parallel.forwardPrefetch, parallel.prefetchDepth, parallel.gatherLimitBytes, parallel.reduceEvery};
    int64_t block = 0;
    for (UnitPlan &unit : plan.units) {
        if (auto settled = settleUnit(unit, configuration, block); !settled)
            return settled;
        block += unit.shape.kind == UnitKind::Block ? 1 : 0;
        for (BucketPlan &bucket : unit.buckets) {
            if (auto settled = settleBucket(bucket, unit, configuration, plan.worldSize); !settled)
                return settled;
        }
    }
    return {};
}

} // namespace

Result<ModelPlan> planOf(const std::vector<UnitShape> &units, const RunConfiguration &configuration, int64_t worldSize)
{
    auto shapes = withAdapters(units, configuration);
    if (!shapes)
        return tl::unexpected(shapes.error());
    ModelPlan plan;
    plan.worldSize = worldSize;
    for (UnitShape &shape : *shapes) {
        UnitPlan unit;
        unit.shape = std::move(shape);
        formBuckets(unit, configuration.units);
        for (BucketPlan &bucket : unit.buckets)
            fixBucket(bucket, unit, configuration);
        plan.units.push_back(std::move(unit));
    }
    if (auto settled = settle(plan, configuration); !settled)
        return tl::unexpected(settled.error());
    const bool trains = std::ranges::any_of(
        plan.units, [](const UnitPlan &unit) { return !std::ranges::all_of(unit.buckets, &BucketPlan::frozen); });
    if (!trains)
        return fail(
            "Every parameter is frozen by a [[unit]] rule, so nothing would be trained. Leave a part out of the "
            "rules with frozen = true, or add adapters by lora.rank.");
    return plan;
}

double flopsPerToken(const ModelPlan &plan, const ModelShape &shape, int64_t sequenceLength)
{
    double flops = flopsPerToken(shape, sequenceLength);
    for (const UnitPlan &unit : plan.units) {
        for (const BucketPlan &bucket : unit.buckets) {
            for (const size_t index : bucket.parameters) {
                const ParameterShape &parameter = unit.shape.parameters[index];
                const bool isLookedUp = parameter.kind == ParameterKind::Embedding && !shape.tiedEmbeddings;
                const auto elements = static_cast<double>(parameter.elements());
                flops += parameter.adapter != AdapterPart::None ? 6 * elements : 0;
                flops -= bucket.frozen && !isLookedUp ? 2 * elements : 0;
            }
        }
    }
    return flops;
}

std::string trainedShare(const ModelPlan &plan)
{
    int64_t trained = 0;
    int64_t all = 0;
    for (const UnitPlan &unit : plan.units) {
        all += unit.shape.elements();
        for (const BucketPlan &bucket : unit.buckets) {
            for (const size_t index : bucket.parameters)
                trained += bucket.frozen ? 0 : unit.shape.parameters[index].elements();
        }
    }
    if (trained == all)
        return {};
    return fmt::format("{} of {} parameters are trained, the others are frozen.",
                       formatCount(static_cast<double>(trained)), formatCount(static_cast<double>(all)));
}

Result<ModelPlan> replanned(const ModelPlan &plan, const RunConfiguration &configuration)
{
    ModelPlan changed = plan;
    if (auto settled = settle(changed, configuration); !settled)
        return tl::unexpected(settled.error());
    return changed;
}

} // namespace shardscope::shapes
