// SPDX-License-Identifier: Apache-2.0
// Recording → text and JSON, compared with files. Where one differs, what came out lies beside it in the test's
// temporary folder as NAME.actual: look at it, and copy it over the golden one if it is what you meant.
#include "profiler/analysis/analysis.h"

#include "core/base/file.h"
#include "recording_fixture.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace shardscope::analysis {
namespace {

std::filesystem::path goldenFolder()
{
    const char *source = std::getenv("SHARDSCOPE_SOURCE");
    return std::filesystem::path(source ? source : ".") / "tests/analysis/golden";
}

void compare(const std::string &actual, const std::string &name)
{
    const auto golden = readTextFile(goldenFolder() / name);
    if (golden && *golden == actual)
        return;
    const auto beside = std::filesystem::temp_directory_path() / (name + ".actual");
    (void)writeFileAtomically(beside, actual);
    ADD_FAILURE() << "differs from " << (goldenFolder() / name) << ", see " << beside;
}

void compareBoth(const test::FixtureOptions &options, const std::string &name)
{
    test::TemporaryFolder folder;
    ASSERT_TRUE(test::writeFixtureRecording(folder.path() / "run", options));
    const auto recording = store::Recording::open(folder.path() / "run", {.cacheFolder = folder.path() / "cache"});
    ASSERT_TRUE(recording) << recording.error().text;
    const auto analysis = analyze(*recording);
    ASSERT_TRUE(analysis) << analysis.error().text;
    compare(toText(*analysis, name), name + ".txt");
    compare(toJson(*analysis) + "\n", name + ".json");
}

TEST(Golden, TwoRanksWithPrefetch)
{
    compareBoth({.steps = 2, .blocks = 1}, "two_ranks");
}

TEST(Golden, NoPrefetchAndARankMissing)
{
    compareBoth({.ranks = 3,
                 .steps = 2,
                 .blocks = 1,
                 .stepNs = 8'000'000,
                 .cuda = false,
                 .prefetch = false,
                 .skipRanks = {1},
                 .droppedRecords = 12},
                "no_prefetch");
}

} // namespace
} // namespace shardscope::analysis
