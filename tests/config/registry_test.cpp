// SPDX-License-Identifier: Apache-2.0
#include "core/config/registry.h"

#include <clocale>
#include <gmock/gmock.h>
#include <locale>
#include <set>

using namespace shardscope;
using namespace shardscope::config;
using testing::HasSubstr;

TEST(Registry, everyKeyIsBoundToAFieldOfItsOwn)
{
    RunConfiguration configuration;
    std::set<const void *> fields;
    std::set<std::string_view> paths;
    for (const Key &key : keys()) {
        EXPECT_TRUE(paths.insert(key.path).second) << key.path;
        EXPECT_FALSE(key.label.empty() || key.help.empty()) << key.path;
        EXPECT_TRUE(key.help.ends_with('.')) << key.path;
        const Field field = key.field(configuration);
        const void *address = std::visit([](const auto &f) -> const void * { return f; }, field);
        EXPECT_TRUE(fields.insert(address).second) << key.path;
    }
}

TEST(Registry, everyDefaultIsAllowedAndReadsBack)
{
    for (const Key &key : keys()) {
        RunConfiguration configuration;
        EXPECT_TRUE(setKey(configuration, key.path, textOf(defaultOf(key)))) << key.path;
        EXPECT_EQ(valueOf(configuration, key), defaultOf(key)) << key.path;
    }
}

TEST(SetKey, setsFieldsOfEveryType)
{
    RunConfiguration c;
    EXPECT_TRUE(setKey(c, "train.steps", "7"));
    EXPECT_TRUE(setKey(c, "optimizer.learning_rate", "3e-4"));
    EXPECT_TRUE(setKey(c, "optimizer.betas", "0.8, 0.99"));
    EXPECT_TRUE(setKey(c, "optimizer.no_decay", "norm,embedding"));
    EXPECT_TRUE(setKey(c, "optimizer.kind", "sgd"));
    EXPECT_TRUE(setKey(c, "parallel.strategy", "grad_op"));
    EXPECT_TRUE(setKey(c, "parallel.prefetch", "off"));
    EXPECT_TRUE(setKey(c, "parallel.share_device", "true"));
    EXPECT_TRUE(setKey(c, "parallel.devices", "1,0"));
    EXPECT_TRUE(setKey(c, "data.path", "/a folder/with \"quotes\"/дом"));
    EXPECT_TRUE(setAssignment(c, "precision.compute=bf16"));
    EXPECT_EQ(c.train.steps, 7);
    EXPECT_EQ(c.optimizer.learningRate, 3e-4);
    EXPECT_EQ(c.optimizer.betas, (std::vector{0.8, 0.99}));
    EXPECT_EQ(c.optimizer.noDecay, (std::vector<std::string>{"norm", "embedding"}));
    EXPECT_EQ(c.optimizer.kind, OptimizerKind::Sgd);
    EXPECT_EQ(c.parallel.strategy, Strategy::GradOp);
    EXPECT_EQ(c.parallel.prefetch, Prefetch::Off);
    EXPECT_TRUE(c.parallel.shareDevice);
    EXPECT_EQ(c.parallel.devices, (std::vector<int64_t>{1, 0}));
    EXPECT_EQ(c.data.path, "/a folder/with \"quotes\"/дом");
    EXPECT_EQ(c.precision.compute, Precision::Bf16);
}

TEST(SetKey, autoLeavesAValueToBeDerived)
{
    RunConfiguration c;
    EXPECT_TRUE(setKey(c, "train.micro_batch", "8"));
    EXPECT_TRUE(setKey(c, "train.micro_batch", "auto"));
    EXPECT_EQ(c.train.microBatch, 0);
    EXPECT_EQ(valueOf(c, **findKey("train.micro_batch")), Value("auto"));
    EXPECT_FALSE(setKey(c, "train.micro_batch", "0"));
    EXPECT_FALSE(setKey(c, "train.steps", "auto"));
}

TEST(SetKey, anUnknownKeyGetsTheNearest)
{
    RunConfiguration c;
    EXPECT_EQ(setKey(c, "train.stesp", "1").error().text, "Unknown key train.stesp. Did you mean train.steps?");
    EXPECT_EQ(setKey(c, "learning_rate", "1").error().text,
              "Unknown key learning_rate. Did you mean optimizer.learning_rate?");
    EXPECT_THAT(setKey(c, "zebra", "1").error().text, HasSubstr("lists all keys"));
}

TEST(SetKey, aWrongValueIsNamedWithWhatIsAllowedAndChangesNothing)
{
    RunConfiguration c;
    const RunConfiguration before = c;
    EXPECT_EQ(setKey(c, "train.steps", "0").error().text,
              "train.steps can't be 0: it takes an integer from 1 to 1000000000 (steps).");
    EXPECT_THAT(setKey(c, "train.steps", "ten").error().text, HasSubstr("can't be \"ten\": it takes an integer"));
    EXPECT_EQ(setKey(c, "parallel.strategy", "ful").error().text,
              "parallel.strategy can't be \"ful\": it takes one of full, grad_op, none, hybrid. Did you mean full?");
    EXPECT_EQ(setKey(c, "optimizer.betas", "0.9").error().text,
              "optimizer.betas can't be 0.9: it takes 2 numbers separated by commas, each ≥ 0 and < 1.");
    for (const char *text : {"1.5", "1 2", "", "0x10", "99999999999999999999", "1,5"})
        EXPECT_FALSE(setKey(c, "train.steps", text)) << text;
    for (const char *text : {"nan", "inf", "-inf", "0", "-1", "1e-3x", "0,001", ""})
        EXPECT_FALSE(setKey(c, "optimizer.learning_rate", text)) << text;
    for (const char *text : {"\xff\xfe", "a\nb", "\xed\xa0\x80", "\xc0\xaf"})
        EXPECT_FALSE(setKey(c, "data.path", text)) << text;
    for (const Key &key : keys())
        EXPECT_EQ(valueOf(c, key), valueOf(before, key)) << key.path;
}

TEST(SetAssignment, wantsKeyAndValue)
{
    RunConfiguration c;
    EXPECT_THAT(setAssignment(c, "train.steps").error().text, HasSubstr("Write KEY=VALUE"));
    EXPECT_FALSE(setAssignment(c, "=5"));
    EXPECT_TRUE(setAssignment(c, "data.path=/x=y"));
    EXPECT_EQ(c.data.path, "/x=y");
}

TEST(ChangedKeys, areWhatMakesTheSameConfigurationFromTheDefaults)
{
    RunConfiguration c;
    EXPECT_TRUE(changedKeys(c).empty());
    ASSERT_TRUE(setKey(c, "optimizer.learning_rate", "0.1"));
    ASSERT_TRUE(setKey(c, "parallel.prefetch", "off"));
    ASSERT_TRUE(setKey(c, "optimizer.no_decay", ""));
    RunConfiguration again;
    for (const auto &[path, text] : changedKeys(c))
        ASSERT_TRUE(setKey(again, path, text));
    EXPECT_EQ(changedKeys(c).size(), 3);
    for (const Key &key : keys())
        EXPECT_EQ(valueOf(again, key), valueOf(c, key)) << key.path;
}

TEST(Describe, saysHelpRangeAndDefault)
{
    EXPECT_EQ(
        describe(**findKey("train.steps")),
        "train.steps  Optimizer steps of the whole run. Takes an integer from 1 to 1000000000 (steps); default 200.");
    EXPECT_THAT(describe(**findKey("train.global_batch")), HasSubstr("or auto; default auto."));
}

/// C++ streams of a German desktop; the C library's too, where the machine has that locale.
class DecimalComma : public testing::Test
{
protected:
    struct Comma : std::numpunct<char>
    {
        char do_decimal_point() const override { return ','; }
        char do_thousands_sep() const override { return '.'; }
        std::string do_grouping() const override { return "\3"; }
    };
    DecimalComma() { std::setlocale(LC_ALL, "de_DE.UTF-8"); }
    ~DecimalComma() override
    {
        std::locale::global(m_before);
        std::setlocale(LC_ALL, "C");
    }
    std::locale m_before = std::locale::global(std::locale(std::locale::classic(), new Comma));
};

TEST_F(DecimalComma, doesNotMatter)
{
    RunConfiguration c;
    ASSERT_TRUE(setKey(c, "optimizer.learning_rate", "0.00125"));
    ASSERT_TRUE(setKey(c, "train.steps", "1234567"));
    EXPECT_EQ(c.optimizer.learningRate, 0.00125);
    EXPECT_EQ(textOf(valueOf(c, **findKey("optimizer.learning_rate"))), "0.00125");
    EXPECT_EQ(textOf(valueOf(c, **findKey("train.steps"))), "1234567");
    EXPECT_FALSE(setKey(c, "optimizer.learning_rate", "0,00125"));
}
