// SPDX-License-Identifier: Apache-2.0
#include "core/shapes/adapters.h"

#include "core/shapes/unit_plan.h"

#include <gmock/gmock.h>

namespace shardscope {

using namespace shapes;
using config::RunConfiguration;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

static RunConfiguration loraOn(std::vector<std::string> targets)
{
    RunConfiguration configuration;
    configuration.lora.rank = 4;
    configuration.lora.targets = std::move(targets);
    return configuration;
}

static std::vector<UnitShape> baseUnits(bool tied = false)
{
    ModelShape shape = presetShape("tiny").value();
    shape.tiedEmbeddings = tied;
    return unitsOf(shape);
}

static std::vector<std::string> adaptersFor(const std::vector<UnitShape> &units, std::vector<std::string> targets)
{
    std::vector<std::string> names;
    const auto adapted = withAdapters(units, loraOn(std::move(targets)));
    EXPECT_TRUE(adapted.has_value()) << adapted.error().text;
    for (const UnitShape &unit : adapted.value_or(std::vector<UnitShape>{})) {
        for (const ParameterShape &parameter : unit.parameters) {
            if (parameter.adapter == AdapterPart::A)
                names.push_back(parameter.name);
        }
    }
    return names;
}

TEST(Adapters, areParametersOfTheirWeightsUnit)
{
    EXPECT_EQ(withAdapters(baseUnits(), {}).value()[1].parameters.size(), baseUnits()[1].parameters.size());
    const UnitShape unit = withAdapters(baseUnits(), loraOn({"block.2.ffn.down"})).value()[3];
    const ParameterShape &a = unit.parameters.end()[-2];
    const ParameterShape &b = unit.parameters.end()[-1];
    EXPECT_EQ(a.name, "block.2.ffn.down.lora_a.weight");
    EXPECT_EQ(b.name, "block.2.ffn.down.lora_b.weight");
    EXPECT_THAT(a.sizes, ElementsAre(4, 384));
    EXPECT_THAT(b.sizes, ElementsAre(128, 4));
    EXPECT_EQ(unit.parameters[a.adapts].name, "block.2.ffn.down.weight");
    EXPECT_EQ(a.adapts, b.adapts);
}

TEST(Adapters, targetsAreNamesOrTheirEndsHereOrInHuggingFacesFiles)
{
    EXPECT_THAT(adaptersFor(baseUnits(), {"block.1.attention.q.weight", "model.layers.0.mlp.up_proj", "lm_head"}),
                ElementsAre("block.0.ffn.up.lora_a.weight", "block.1.attention.q.lora_a.weight", "head.lora_a.weight"));
    for (const char *target : {"attention.q", "q_proj", "self_attn.q_proj", "block.*.attention.q", "*q_proj.weight"})
        EXPECT_EQ(adaptersFor(baseUnits(), {target}).size(), 4U) << target;
    EXPECT_EQ(adaptersFor(baseUnits(), {"block.*"}).size(), 28U) << "of what matches, linear weights";
    EXPECT_EQ(adaptersFor(baseUnits(), {"*"}).size(), 29U);
    EXPECT_EQ(adaptersFor(baseUnits(true), {"*"}).size(), 28U);
    EXPECT_EQ(adaptersFor(baseUnits(), {"q_proj", "attention.*"}).size(), 16U) << "one a weight";
}

TEST(Adapters, whatCanHaveNoneIsRefused)
{
    const auto refusal = [](bool tied, const char *target) {
        const auto adapted = withAdapters(baseUnits(tied), loraOn({"block.*", target}));
        return adapted ? std::string() : adapted.error().text;
    };
    EXPECT_THAT(refusal(true, "lm_head"), HasSubstr("uses the embedding's weight"));
    EXPECT_THAT(refusal(true, "head"), HasSubstr("uses the embedding's weight"));
    EXPECT_THAT(refusal(false, "embedding"), HasSubstr("matches embedding.weight, which is no linear weight"));
    EXPECT_THAT(refusal(false, "attention_norm"), HasSubstr("block.0.attention_norm.weight"));
    EXPECT_THAT(refusal(false, "query"), AllOf(HasSubstr("no parameter matches \"query\""),
                                               HasSubstr("attention.q, attention.k, attention.v, attention.o, "
                                                         "ffn.gate, ffn.up, ffn.down, head.")));
    EXPECT_THAT(refusal(false, "atention.q"), HasSubstr("Did you mean attention.q?"));
    EXPECT_THAT(refusal(false, "block.4.*"), HasSubstr("no parameter matches"));
}

TEST(Adapters, lieInBucketsOfTheirOwnBesideAFrozenBase)
{
    RunConfiguration configuration = loraOn({"attention.q", "attention.v"});
    const auto bucketsOfBlock = [&] {
        const ModelPlan plan = planOf(baseUnits(), configuration, 2).value();
        std::vector<std::string> texts;
        for (const BucketPlan &bucket : plan.units[1].buckets)
            texts.push_back(bucket.name + (bucket.frozen ? " frozen" : "") +
                            (bucket.settings.strategy == Strategy::None ? " none" : ""));
        return texts;
    };
    EXPECT_THAT(bucketsOfBlock(), ElementsAre("block.0 frozen", "block.0/lora"));
    configuration.units = {{.match = "*.lora_*", .settings = {{"parallel.strategy", "none"}}}};
    EXPECT_THAT(bucketsOfBlock(), ElementsAre("block.0 frozen", "block.0/lora none"));
    configuration.units = {{.match = "block.*.attention.q.*", .settings = {{"parallel.strategy", "none"}}}};
    EXPECT_THAT(bucketsOfBlock(), ElementsAre("block.0 frozen", "block.0/attention.q frozen none", "block.0/lora",
                                              "block.0/lora.attention.q none"));
    // What a rule says of frozen counts more.
    configuration.units = {{.kind = ParameterKind::Norm, .frozen = false}, {.match = "*.v.lora_*", .frozen = true}};
    EXPECT_THAT(bucketsOfBlock(),
                ElementsAre("block.0 frozen", "block.0/norm", "block.0/lora", "block.0/lora.v frozen"));
    const ModelPlan plan = planOf(baseUnits(), loraOn({"attention.q"}), 2).value();
    EXPECT_TRUE(plan.units.front().buckets.front().frozen);
    EXPECT_TRUE(plan.units.back().buckets.front().frozen);
}

TEST(Adapters, aFrozenBaseCostsNoGradientsOfWeights)
{
    const ModelShape shape = presetShape("tiny").value();
    const double whole = flopsPerToken(shape, 64);
    EXPECT_EQ(flopsPerToken(planOf(unitsOf(shape), {}, 1).value(), shape, 64), whole);
    const ModelPlan plan = planOf(unitsOf(shape), loraOn({"attention.q"}), 1).value();
    const auto base = static_cast<double>(parameterCount(shape) - shape.vocabulary * shape.hidden);
    EXPECT_EQ(trainedShare(planOf(unitsOf(shape), {}, 1).value()), "");
    EXPECT_EQ(trainedShare(plan), "4.10 k of 988 k parameters are trained, the others are frozen.");
    EXPECT_EQ(flopsPerToken(plan, shape, 64), whole - 2 * base + 6 * 4 * 4 * (128 + 128));
}

} // namespace shardscope
