// SPDX-License-Identifier: Apache-2.0
#include "app/cli/command_line.h"
#include "app/cli/exit_code.h"
#include "tests/cli/fake_rank_command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdexcept>

using namespace shardscope;
using testing::AllOf;
using testing::HasSubstr;

TEST(Guarded, tellsOfAnExceptionAndEndsWithAnExitCode)
{
    testing::internal::CaptureStderr();
    const int code = cli::guarded("status", []() -> int { throw std::runtime_error("no such thing"); });
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("shardscope-cli: status could not go on: no such"));
    EXPECT_EQ(code, cli::kJobFailed);
    EXPECT_EQ(cli::guarded("status", [] { return 7; }), 7);
}

TEST(DeletedFolder, isNamedWhereAPathIsOfIt)
{
    test::FakeRankCommandLine cli;
    cli.ranksDo("", 2);
    const std::vector<std::string> inADeletedFolder = {
        "/bin/sh", "-c", R"(mkdir "$HOME/gone" && cd "$HOME/gone" && rmdir "$HOME/gone" && exec "$@")", "sh"};
    const test::Finished relative =
        cli.startThrough(inADeletedFolder, {"run", "--preset", "tiny", "--data", "mine.txt"}).wait();
    EXPECT_EQ(relative.exitCode, 2) << relative.signal;
    EXPECT_THAT(relative.errors, AllOf(HasSubstr("mine.txt"), HasSubstr("Change to a folder that exists")));
    const test::Finished out = cli.startThrough(inADeletedFolder, cli.runArguments("a", {"--out", "here"})).wait();
    EXPECT_EQ(out.exitCode, 2) << out.signal;
    EXPECT_THAT(out.errors, HasSubstr("Change to a folder that exists"));
    const test::Finished whole = cli.startThrough(inADeletedFolder, cli.runArguments("a")).wait();
    EXPECT_EQ(whole.exitCode, 0) << "nothing needs that folder: " << whole.errors;
}

TEST(ModelFolder, whoseConfigurationIsAFolderIsRefused)
{
    test::FakeRankCommandLine cli;
    std::filesystem::create_directories(cli.folder() / "model" / "config.json");
    const test::Finished refused =
        cli.run({"run", "--model", (cli.folder() / "model").string(), "--data", cli.data().string()});
    EXPECT_EQ(refused.exitCode, 2) << refused.signal;
    EXPECT_THAT(refused.errors, AllOf(HasSubstr("config.json"), HasSubstr("Is a directory")));
}
