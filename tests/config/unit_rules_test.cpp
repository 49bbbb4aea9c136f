// SPDX-License-Identifier: Apache-2.0
#include "core/config/unit_rules.h"

#include "core/config/check.h"
#include "core/config/configuration_file.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

using namespace shardscope;
using namespace shardscope::config;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

using Setting = UnitRule::Setting;

std::string ruleMistakes(std::string_view toml)
{
    RunConfiguration c;
    const auto applied = applyToml(c, toml, "run.toml");
    return applied ? "" : applied.error().text;
}

std::string ruleRefusal(std::string_view rule)
{
    const auto read = ruleFromText(rule);
    return read ? "" : read.error().text;
}

} // namespace

TEST(UnitRules, areReadFromTomlInTheirOrder)
{
    RunConfiguration c;
    const auto applied = applyToml(c, R"(
        [[unit]]
        match = "block.*"
        prefetch = "off"
        strategy = "grad_op"
        [[unit]]
        kind = "norm"
        min_parameters = 1_000
        wrap = true
        ignore = false
        frozen = true
        shard_group = "auto"
    )",
                                   "run.toml");
    ASSERT_TRUE(applied) << applied.error().text;
    ASSERT_EQ(c.units.size(), 2U);
    EXPECT_EQ(c.units[0].match, "block.*");
    EXPECT_THAT(c.units[0].settings,
                ElementsAre(Setting{"parallel.strategy", "grad_op"}, Setting{"parallel.prefetch", "off"}));
    EXPECT_FALSE(c.units[0].kind || c.units[0].ignore || c.units[0].frozen);
    EXPECT_EQ(c.units[1].match, "*");
    EXPECT_EQ(c.units[1].kind, ParameterKind::Norm);
    EXPECT_EQ(c.units[1].minParameters, 1000);
    EXPECT_TRUE(c.units[1].wrap);
    EXPECT_EQ(c.units[1].ignore, false);
    EXPECT_EQ(c.units[1].frozen, true);
    EXPECT_THAT(c.units[1].settings, ElementsAre(Setting{"parallel.shard_group", "auto"}));
}

TEST(UnitRules, aListTakesThePlaceOfTheOneBefore)
{
    RunConfiguration c;
    ASSERT_TRUE(applyToml(c, "unit = [{match = \"a\"}, {match = \"b\"}]", "x"));
    ASSERT_TRUE(applyToml(c, "train.steps = 5", "x"));
    EXPECT_EQ(c.units.size(), 2U);
    ASSERT_TRUE(applyToml(c, "[[unit]]\nmatch = \"c\"", "x"));
    ASSERT_EQ(c.units.size(), 1U);
    EXPECT_EQ(c.units[0].match, "c");
    ASSERT_TRUE(applyToml(c, "unit = []", "x"));
    EXPECT_TRUE(c.units.empty());
}

TEST(UnitRules, everyMistakeInTomlIsToldWithItsPlace)
{
    EXPECT_EQ(
        ruleMistakes("[[unit]]\nmatch = \"*\"\nstratgy = \"none\"\n[[unit]]\nstrategy = \"fulll\"\nmin_parameters = "
                     "-1\nwrap = 1\nkind = \"norn\"\nignore = 1979-05-27\n"),
        "run.toml:3:1: Unknown key stratgy of a [[unit]]. Did you mean strategy?\n"
        "run.toml:5:12: strategy can't be \"fulll\": it takes one of full, grad_op, none, hybrid. Did you mean "
        "full?\n"
        "run.toml:6:18: min_parameters can't be -1: it takes an integer ≥ 0.\n"
        "run.toml:7:8: wrap can't be 1: it takes true or false.\n"
        "run.toml:8:8: kind can't be \"norn\": it takes one of embedding, linear, norm, bias. Did you mean norm?\n"
        "run.toml:9:10: ignore can't be a table or a time.");
    EXPECT_EQ(ruleMistakes("[unit]\nmatch = \"*\""), "run.toml:1:2: unit is a list of rules: write [[unit]].");
    EXPECT_EQ(ruleMistakes("unit = [1]"), "run.toml:1:1: unit is a list of rules: write [[unit]].");
    EXPECT_EQ(ruleMistakes("[[unit]]\n"), "run.toml:1:1: This [[unit]] says nothing: give it a match.");
    EXPECT_THAT(ruleMistakes("[[unit]]\nmatch = \"\""), HasSubstr("match can't be \"\""));
}

TEST(UnitRules, readBackFromTheJsonThatTheyWrite)
{
    RunConfiguration c;
    EXPECT_EQ(toJson(c)["unit"].dump(), "[]");
    ASSERT_TRUE(applyToml(c, R"(
        [[unit]]
        match = "block.*"
        strategy = "hybrid"
        shard_group = 2
        wrap = true
        [[unit]]
        match = "embedding.*"
        kind = "embedding"
        min_parameters = 5
        ignore = false
        frozen = true
        [[unit]]
        match = "c"
    )",
                          "run.toml"));
    const auto json = toJson(c);
    EXPECT_EQ(json["unit"].dump(),
              R"([{"match":"block.*","wrap":true,"strategy":"hybrid","shard_group":2},)"
              R"({"match":"embedding.*","kind":"embedding","min_parameters":5,"ignore":false,"frozen":true},)"
              R"({"match":"c"}])");
    RunConfiguration again;
    again.units.resize(1); // they go
    const auto applied = applyJson(again, nlohmann::ordered_json::parse(json.dump()), "config.json");
    ASSERT_TRUE(applied) << applied.error().text;
    EXPECT_EQ(again.units, c.units);
    // A configuration of a version before the rules has no list, and leaves what is there.
    ASSERT_TRUE(applyJson(again, nlohmann::ordered_json::parse(R"({"train": {"steps": 3}})"), "config.json"));
    EXPECT_EQ(again.units, c.units);
}

TEST(UnitRules, everyMistakeInJsonIsTold)
{
    RunConfiguration c;
    const auto json =
        nlohmann::ordered_json::parse(R"({"unit": [{"match": "*", "strategy": 5, "frozn": true}, 7, {"kind": null}]})");
    EXPECT_EQ(applyJson(c, json, "config.json").error().text,
              "config.json: unit 1: strategy can't be 5: it takes one of full, grad_op, none, hybrid.\n"
              "config.json: unit 1: Unknown key frozn of a [[unit]]. Did you mean frozen?\n"
              "config.json: unit 2: A rule is an object with keys.\n"
              "config.json: unit 3: kind can't be null.");
    EXPECT_EQ(applyJson(c, nlohmann::ordered_json::parse(R"({"unit": {}})"), "x").error().text,
              "x: unit must be a list of rules.");
}

TEST(UnitRules, areReadFromTheCommandLine)
{
    const auto one = ruleFromText("block.*:strategy=none");
    ASSERT_TRUE(one) << one.error().text;
    EXPECT_EQ(one->match, "block.*");
    EXPECT_THAT(one->settings, ElementsAre(Setting{"parallel.strategy", "none"}));

    const auto several = ruleFromText(" [[:alpha:]]* : kind = norm , min_parameters=10,wrap=yes,shard_group=2");
    ASSERT_TRUE(several) << several.error().text;
    EXPECT_EQ(several->match, "[[:alpha:]]*");
    EXPECT_EQ(several->kind, ParameterKind::Norm);
    EXPECT_EQ(several->minParameters, 10);
    EXPECT_TRUE(several->wrap);
    EXPECT_THAT(several->settings, ElementsAre(Setting{"parallel.shard_group", "2"}));
    EXPECT_EQ(textOf(*several), "[[:alpha:]]*:kind=norm,min_parameters=10,wrap=true,shard_group=2");
    EXPECT_EQ(*ruleFromText(textOf(*several)), *several);
}

TEST(UnitRules, refusalsOnTheCommandLineSayWhatToWrite)
{
    EXPECT_THAT(ruleRefusal("strategy=none"), HasSubstr("Write PATTERN:KEY=VALUE"));
    EXPECT_THAT(ruleRefusal(":strategy=none"), HasSubstr("Write PATTERN:KEY=VALUE"));
    EXPECT_THAT(ruleRefusal("a:"), HasSubstr("is no assignment"));
    EXPECT_THAT(ruleRefusal("a:strategy"), HasSubstr("is no assignment"));
    EXPECT_THAT(ruleRefusal("a:match=b"), HasSubstr("The pattern stands before the colon"));
    EXPECT_EQ(ruleRefusal("a:stratgy=none"),
              "--unit 'a:stratgy=none': Unknown key stratgy of a [[unit]]. Did you mean strategy?");
    EXPECT_THAT(ruleRefusal("a:strategy=many"), HasSubstr("strategy can't be \"many\": it takes one of full"));
    EXPECT_THAT(ruleRefusal("a:min_parameters=x"), HasSubstr("min_parameters can't be \"x\""));
    EXPECT_THAT(ruleRefusal("a:shard_group=0"), HasSubstr("shard_group can't be 0: it takes an integer from 1"));
}

TEST(UnitRules, ofUnknownNamesTheListIsShown)
{
    const std::string text = findRuleKey("zzzzzzzz").error().text;
    for (const RuleKey &key : ruleKeys())
        EXPECT_THAT(text, HasSubstr(key.name));
}

TEST(UnitRules, settingsThatNoRuleMayHaveAreRefusedByTheCheck)
{
    RunConfiguration c;
    c.units = {{.settings = {{"train.steps", "5"}}}};
    MachineFacts machine;
    const std::vector<KnownModel> models = {{"15m", 32000, 2048}};
    EXPECT_THAT(resolveRun(c, machine, models).error().text, HasSubstr("A [[unit]] can't set train.steps."));
    c.units = {{.settings = {{"parallel.strategy", "some"}}}};
    const CheckResult checked = checkRun(c, machine, models);
    ASSERT_EQ(checked.problems.size(), 1U);
    EXPECT_EQ(checked.problems[0].key, "unit");
    EXPECT_THAT(checked.problems[0].message, HasSubstr("parallel.strategy can't be \"some\""));
}

TEST(UnitRules, liveAreTheSettingsWhoseKeyIs)
{
    EXPECT_TRUE(findRuleKey("strategy").value()->live());
    for (const char *name : {"match", "kind", "min_parameters", "wrap", "ignore", "frozen"})
        EXPECT_FALSE(findRuleKey(name).value()->live()) << name;
}
