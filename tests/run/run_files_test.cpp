// SPDX-License-Identifier: Apache-2.0
#include "core/base/file.h"
#include "core/run/run_record.h"
#include "core/run/user_notes.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace shardscope;
using namespace shardscope::run;
using shardscope::test::TemporaryFolder;
using testing::HasSubstr;

TEST(RunRecord, isWrittenOnceAndComesBack)
{
    const TemporaryFolder temporary;
    const RunFolder folder(temporary.path());
    RunRecord record;
    record.originNs = 1'700'000'000'123'456'789;
    record.command = {"shardscope-cli", "run", "--out", "a \"b\" ü"};
    record.asked = {{"train", {{"steps", 20}}}};
    record.resolved = {{"train", {{"steps", 20}, {"learning_rate", 0.001}}}};
    record.versions = {{"shardscope", "0.1.0"}};
    ASSERT_TRUE(writeRunRecord(folder, record));
    const auto read = readRunRecord(folder);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->originNs, record.originNs);
    EXPECT_EQ(read->command, record.command);
    EXPECT_EQ(read->asked, record.asked);
    EXPECT_EQ(read->resolved, record.resolved);
    EXPECT_EQ(read->versions, record.versions);
    EXPECT_EQ(readOriginNs(folder).value(), record.originNs);
    EXPECT_THAT(readTextFile(folder.runFile()).value(), HasSubstr("0.001"));

    const auto again = writeRunRecord(folder, record);
    ASSERT_FALSE(again);
    EXPECT_THAT(again.error().text, HasSubstr("never rewritten"));
}

TEST(RunRecord, describesTheMachine)
{
    const auto machine = describeMachine();
    EXPECT_GT(machine["memory_bytes"].get<int64_t>(), 1 << 20);
    EXPECT_GE(machine["cores"].get<int>(), 1);
    EXPECT_FALSE(machine["host"].get<std::string>().empty());
}

TEST(RunRecord, saysWhatIsWrong)
{
    const TemporaryFolder temporary;
    const RunFolder folder(temporary.path());
    EXPECT_THAT(readRunRecord(folder).error().text, HasSubstr("run.json"));
    ASSERT_TRUE(writeFileAtomically(folder.runFile(), "{}"));
    EXPECT_THAT(readOriginNs(folder).error().text, HasSubstr("origin_ns"));
}

TEST(UserNotes, keepWhatOtherVersionsWrote)
{
    const TemporaryFolder temporary;
    const RunFolder folder(temporary.path());
    EXPECT_TRUE(readUserNotes(folder)->shownName.empty()) << "no file, no notes";
    ASSERT_TRUE(writeFileAtomically(folder.userFile(), R"({"colour": "red", "notes": 5})"));
    ASSERT_TRUE(writeUserNotes(folder, {"best", "lr 1e-3", {"a", "b"}}));
    const auto notes = readUserNotes(folder);
    EXPECT_EQ(notes->shownName, "best");
    EXPECT_EQ(notes->notes, "lr 1e-3");
    EXPECT_THAT(notes->tags, testing::ElementsAre("a", "b"));
    EXPECT_THAT(readTextFile(folder.userFile()).value(), HasSubstr("red"));
    ASSERT_TRUE(writeFileAtomically(folder.userFile(), "[]"));
    EXPECT_FALSE(readUserNotes(folder));
    EXPECT_FALSE(writeUserNotes(folder, {})) << "what can't be read is not overwritten";
}
