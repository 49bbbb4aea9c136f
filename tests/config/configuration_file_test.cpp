// SPDX-License-Identifier: Apache-2.0
#include "core/base/file.h"
#include "core/config/configuration_file.h"
#include "core/config/registry.h"

#include <clocale>
#include <filesystem>
#include <gmock/gmock.h>
#include <locale>
#include <nlohmann/json.hpp>

using namespace shardscope;
using namespace shardscope::config;
using testing::HasSubstr;

namespace {

std::string mistakesOf(std::string_view toml)
{
    RunConfiguration c;
    const auto applied = applyToml(c, toml, "run.toml");
    return applied ? "" : applied.error().text;
}

} // namespace

TEST(Toml, setsWhatItNamesAndLeavesTheRest)
{
    RunConfiguration c;
    c.train.seed = 99;
    const auto applied = applyToml(c, R"(
        train.steps = 1_000
        [optimizer]
        kind = "sgd"
        learning_rate = 1      # an integer serves
        betas = [0, 0.5]
        no_decay = []
        [parallel]
        devices = [2, 3]
        prefetch = "off"
        [data]
        path = 'C:\x "y" ü'
    )",
                                   "run.toml");
    ASSERT_TRUE(applied) << applied.error().text;
    EXPECT_EQ(c.train.steps, 1000);
    EXPECT_EQ(c.train.seed, 99);
    EXPECT_EQ(c.optimizer.kind, OptimizerKind::Sgd);
    EXPECT_EQ(c.optimizer.learningRate, 1.0);
    EXPECT_EQ(c.optimizer.betas, (std::vector{0.0, 0.5}));
    EXPECT_TRUE(c.optimizer.noDecay.empty());
    EXPECT_EQ(c.parallel.devices, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(c.parallel.prefetch, Prefetch::Off);
    EXPECT_EQ(c.data.path, "C:\\x \"y\" ü");
}

TEST(Toml, everyMistakeIsToldWithItsPlaceInOrder)
{
    EXPECT_EQ(mistakesOf("[train]\nstesp = 5\nsteps = 0\n\n[model]\npreset = 3\n"),
              "run.toml:2:1: Unknown key train.stesp. Did you mean train.steps?\n"
              "run.toml:3:9: train.steps can't be 0: it takes an integer from 1 to 1000000000 (steps).\n"
              "run.toml:6:10: model.preset can't be 3: it takes text in UTF-8 without control characters.");
}

TEST(Toml, malformedTextIsToldWithItsPlace)
{
    EXPECT_THAT(mistakesOf("[train]\nsteps = = 5\n"), testing::StartsWith("run.toml:2:"));
    EXPECT_THAT(mistakesOf("[train\n"), testing::StartsWith("run.toml:1:"));
}

TEST(Toml, refusesWhatIsNoConfiguration)
{
    EXPECT_THAT(mistakesOf("steps = 5"), HasSubstr("Did you mean train.steps?"));
    EXPECT_THAT(mistakesOf("[zebra]\n"), HasSubstr("Unknown section [zebra]"));
    EXPECT_THAT(mistakesOf("train = 5"), HasSubstr("Unknown key train"));
    EXPECT_THAT(mistakesOf("[train]\nsteps = 1979-05-27"), HasSubstr("train.steps takes an integer"));
    EXPECT_THAT(mistakesOf("[train]\nsteps = 5.0"), HasSubstr("train.steps can't be 5"));
    EXPECT_THAT(mistakesOf("[optimizer]\nbetas = [0.9, \"x\"]"), HasSubstr("optimizer.betas takes 2 numbers"));
    EXPECT_THAT(mistakesOf("[train.steps]\nx = 1"), HasSubstr("Unknown key train.steps.x"));
    EXPECT_THAT(mistakesOf("[[units]]\nmatch = \"*\""), HasSubstr("Unknown key units"));
    EXPECT_EQ(mistakesOf("[train]\n"), "");
}

TEST(Toml, aKeyOfTwoDotsIsReadInItsSection)
{
    for (const char *text : {"[precision]\ncompute = \"fp16\"\nscaler.initial = 1024\nscaler.backoff = 0.25",
                             "[precision]\ncompute = \"fp16\"\n[precision.scaler]\ninitial = 1024\nbackoff = 0.25"}) {
        RunConfiguration c;
        ASSERT_TRUE(applyToml(c, text, "run.toml")) << text;
        EXPECT_EQ(c.precision.scaler.initial, 1024);
        EXPECT_EQ(c.precision.scaler.backoff, 0.25);
    }
    EXPECT_THAT(mistakesOf("[precision.scaler]\ninitail = 5"), HasSubstr("precision.scaler.initial"));
}

TEST(Json, holdsEveryKeyAndReadsBack)
{
    RunConfiguration c;
    ASSERT_TRUE(setKey(c, "optimizer.learning_rate", "0.30000000000000004"));
    ASSERT_TRUE(setKey(c, "train.seed", "9223372036854775807"));
    ASSERT_TRUE(setKey(c, "run.name", "naïve \"run\""));
    const auto json = toJson(c);
    EXPECT_EQ(json["train"]["micro_batch"], "auto");
    EXPECT_EQ(json["parallel"]["prefetch"], "pre");
    size_t count = 0;
    for (const auto &section : json)
        count += section.size();
    EXPECT_EQ(count, keys().size());

    RunConfiguration again;
    const auto applied = applyJson(again, nlohmann::ordered_json::parse(json.dump(2)), "config.json");
    ASSERT_TRUE(applied) << applied.error().text;
    for (const Key &key : keys())
        EXPECT_EQ(valueOf(again, key), valueOf(c, key)) << key.path;
}

TEST(Json, everyMistakeIsTold)
{
    RunConfiguration c;
    const auto json = nlohmann::ordered_json::parse(R"({"train": {"steps": null, "sed": 1}, "run": 5})");
    EXPECT_EQ(applyJson(c, json, "config.json").error().text,
              "config.json: train.steps can't be null: it takes an integer from 1 to 1000000000 (steps).\n"
              "config.json: Unknown key train.sed. Did you mean train.seed?\n"
              "config.json: run must be a section with keys.");
    EXPECT_FALSE(applyJson(c, nlohmann::ordered_json::parse(R"({"train": {"seed": 18446744073709551615}})"), "x"));
    EXPECT_FALSE(applyJson(c, nlohmann::ordered_json::array(), "x"));
}

class ConfigurationFile : public testing::Test
{
protected:
    void SetUp() override
    {
        std::filesystem::remove_all(folder);
        std::filesystem::create_directories(folder);
    }
    std::filesystem::path write(std::string_view name, std::string_view text)
    {
        EXPECT_TRUE(writeFileAtomically(folder / name, text));
        return folder / name;
    }
    const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "configuration \"files\" ü";
};

TEST_F(ConfigurationFile, isReadByItsKind)
{
    EXPECT_EQ(readConfiguration(write("a.toml", "train.steps = 3")).value().train.steps, 3);
    EXPECT_EQ(readConfiguration(write("a.json", R"({"train": {"steps": 4}})")).value().train.steps, 4);
}

TEST_F(ConfigurationFile, namesThePathOfWhatCannotBeRead)
{
    EXPECT_THAT(readConfiguration(folder / "missing.toml").error().text, HasSubstr("missing.toml: No such file"));
    EXPECT_THAT(readConfiguration(folder).error().text, HasSubstr("is a folder"));
    EXPECT_THAT(readConfiguration(write("b.json", "{")).error().text, HasSubstr("b.json"));
    EXPECT_THAT(readConfiguration(write("b.toml", "[train]\nsteps = 0")).error().text, HasSubstr("b.toml:2:9: "));
}

TEST_F(ConfigurationFile, readsAndWritesTheSameUnderADecimalCommaLocale)
{
    struct Comma : std::numpunct<char>
    {
        char do_decimal_point() const override { return ','; }
        char do_thousands_sep() const override { return '.'; }
        std::string do_grouping() const override { return "\3"; }
    };
    const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Comma));
    std::setlocale(LC_ALL, "de_DE.UTF-8"); // where the machine has it
    RunConfiguration c;
    const auto applied = applyToml(c, "optimizer.learning_rate = 0.00125\ntrain.steps = 1234567", "run.toml");
    const std::string json = toJson(c).dump();
    std::locale::global(before);
    std::setlocale(LC_ALL, "C");
    ASSERT_TRUE(applied) << applied.error().text;
    EXPECT_EQ(c.optimizer.learningRate, 0.00125);
    EXPECT_THAT(json, HasSubstr("\"learning_rate\":0.00125,"));
    EXPECT_THAT(json, HasSubstr("\"steps\":1234567,"));
}
