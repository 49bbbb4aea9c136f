// SPDX-License-Identifier: Apache-2.0
// Real processes: alone, as ranks, under torchrun; stopped by signals and resumed.
#include "core/base/file.h"
#include "core/files/checkpoint_folder.h"
#include "core/run/run_status.h"
#include "tests/worker/worker_fixture.h"

#include <array>
#include <csignal>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace shardscope;
using namespace shardscope::testing;
using ::testing::HasSubstr;

namespace {

class WorkerRun : public WorkerFixture
{
protected:
    run::RunStatus status() const { return run::readStatus(run::RunFolder(m_run)).value(); }

    /// The first column of what the recording of a rank answers.
    std::vector<double> numbers(int attempt, int rank, const char *query) const
    {
        std::vector<double> all;
        sqlite3 *database = nullptr;
        const auto path = run::RunFolder(m_run).rankDatabase(attempt, rank);
        EXPECT_EQ(::sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK) << path;
        sqlite3_stmt *rows = nullptr;
        ::sqlite3_prepare_v2(database, query, -1, &rows, nullptr);
        while (::sqlite3_step(rows) == SQLITE_ROW)
            all.push_back(::sqlite3_column_double(rows, 0));
        ::sqlite3_finalize(rows);
        ::sqlite3_close(database);
        return all;
    }
    std::vector<double> recordedLosses(int attempt, int rank) const
    {
        return numbers(attempt, rank, "SELECT loss FROM step ORDER BY number");
    }
};

TEST_F(WorkerRun, AloneWithALocaleOfDecimalCommas)
{
    auto german = environment();
    german["LC_ALL"] = german["LANG"] = "de_DE.UTF-8";
    Program program(command({"--set", "train.steps=5", "--set", "optimizer.learning_rate=0.0005"}), german, log());
    ASSERT_EQ(program.wait(), 0) << program.output();
    EXPECT_THAT(program.output(), HasSubstr("step 5/5  loss "));
    EXPECT_EQ(status().state, RunState::Done);
    EXPECT_EQ(status().step, 5);
    const auto losses = recordedLosses(1, 0);
    ASSERT_EQ(losses.size(), 5U);
    EXPECT_EQ(losses.back(), status().loss);
    EXPECT_TRUE(std::filesystem::exists(m_run / "run.json"));
    EXPECT_EQ(readTextFile(m_run / "attempt-1/in-force.json").value(),
              readTextFile(m_run / "attempt-1/config.json").value());
}

TEST_F(WorkerRun, Fp16TellsItsLossScaleAndTheStepsThatOverflow)
{
    Program program(
        command({"--set", "train.steps=3", "--set", "precision.compute=fp16", "--set", "precision.scaler.initial=1e9"}),
        environment(), log());
    ASSERT_EQ(program.wait(), 0) << program.output();
    EXPECT_THAT(program.output(), HasSubstr("loss scale 5e+08  skipped"));
    EXPECT_EQ(status().stepState, StepState::Skipped);
    EXPECT_EQ(status().lossScale, 2.5e8);
    EXPECT_EQ(status().skippedSteps, 3);
}

TEST_F(WorkerRun, TwoRanksRecordTheSameLosses)
{
    const int port = freePort();
    Program second(command({"--set", "train.steps=4"}), environment(1, 2, port), log(1));
    Program first(command({"--set", "train.steps=4"}), environment(0, 2, port), log(0));
    ASSERT_EQ(first.wait(), 0) << first.output();
    ASSERT_EQ(second.wait(), 0) << second.output();
    const auto losses = recordedLosses(1, 0);
    EXPECT_EQ(losses.size(), 4U);
    EXPECT_EQ(losses, recordedLosses(1, 1));
    EXPECT_TRUE(std::filesystem::exists(m_run / "attempt-1/rank-1.flight"));
}

TEST_F(WorkerRun, SigtermLeavesACheckpointAndResumeGoesOnInTheNextAttempt)
{
    Program program(command({"--set", "train.steps=100000"}), environment(), log());
    ASSERT_TRUE(program.waitForOutput("step 3/100000")) << program.output();
    program.signal(SIGTERM);
    ASSERT_EQ(program.wait(), 0) << program.output();
    const auto newest = files::CheckpointFolder(m_run / "checkpoints").newest();
    ASSERT_TRUE(newest) << program.output();
    EXPECT_EQ(status().state, RunState::Done);
    EXPECT_EQ(status().step, newest->step);
    EXPECT_EQ(status().checkpointStep, newest->step);

    const std::string steps = fmt::format("train.steps={}", newest->step + 2);
    Program again(command({"--set", steps, "--resume"}), environment(), log());
    ASSERT_EQ(again.wait(), 0) << again.output();
    EXPECT_THAT(again.output(), HasSubstr(fmt::format("Going on from step {}", newest->step)));
    EXPECT_EQ(status().attempt, 2);
    EXPECT_EQ(status().step, newest->step + 2);
    EXPECT_EQ(recordedLosses(2, 0).size(), 2U);
}

TEST_F(WorkerRun, InterruptedFromTheKeyboardEndsWith130)
{
    Program program(command({"--set", "train.steps=100000"}), environment(), log());
    ASSERT_TRUE(program.waitForOutput("step 2/100000")) << program.output();
    program.signal(SIGINT);
    EXPECT_EQ(program.wait(), 130) << program.output();
    EXPECT_TRUE(files::CheckpointFolder(m_run / "checkpoints").newest());
}

TEST_F(WorkerRun, SignalsEndARankThatWaitsForOthersAtOnce)
{
    for (const auto &[signal, exitCode] : {std::pair(SIGTERM, 143), std::pair(SIGINT, 130)}) {
        Program lonely(command(), environment(0, 2, freePort()), log());
        ASSERT_TRUE(lonely.waitForOutput("text.txt")) << lonely.output(); // its data are read; nobody else comes
        lonely.signal(signal);
        EXPECT_EQ(lonely.wait(), exitCode) << lonely.output();
        EXPECT_THAT(lonely.output(), HasSubstr("before the run began"));
        EXPECT_FALSE(std::filesystem::exists(m_run));
    }
}

TEST_F(WorkerRun, ARankThatDiesEndsTheOtherWithAReason)
{
    const int port = freePort();
    Program second(command({"--set", "train.steps=100000"}), environment(1, 2, port), log(1));
    Program first(command({"--set", "train.steps=100000"}), environment(0, 2, port), log(0));
    ASSERT_TRUE(first.waitForOutput("step 2/100000")) << first.output() << second.output();
    second.signal(SIGKILL);
    EXPECT_EQ(first.wait(), 1) << first.output();
    EXPECT_THAT(first.output(), HasSubstr("lost its connection to another rank"));
    EXPECT_EQ(status().state, RunState::Failed);
    EXPECT_THAT(status().failure.value().text, HasSubstr("lost its connection"));
    EXPECT_FALSE(status().failure->rank) << "the one that wrote this is not the one that failed";
}

/// A supervisor sends SIGTERM as soon as it knows of a failure: here at once.
TEST_F(WorkerRun, ARankThatHasSaidWhyItFailsClosesItsRecordingBeforeItEnds)
{
    Program whole(command({"--set", "train.steps=1"}), environment(), log());
    ASSERT_EQ(whole.wait(), 0) << whole.output(); // makes the run's folder
    std::filesystem::create_directory(m_run / "attempt-2");
    std::array<int, 2> sockets{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
    ::fcntl(sockets[0], F_SETFD, FD_CLOEXEC);
    auto supervised = environment(0, 1, freePort());
    supervised["SHARDSCOPE_CONTROL_FD"] = std::to_string(sockets[1]);
    supervised["SHARDSCOPE_ATTEMPT"] = "2";
    // The weights are soon so large that their products are infinite.
    Program failing(
        command({"--set", "train.steps=9", "--set", "optimizer.kind=sgd", "--set", "optimizer.learning_rate=900",
                 "--set", "optimizer.min_learning_rate=900", "--set", "optimizer.warmup_steps=0", "--set",
                 "optimizer.clip_norm=0", "--set", "optimizer.weight_decay=1000"}),
        supervised, log(1));
    ::close(sockets[1]);
    std::string heard;
    while (heard.find("\"failure\"") == std::string::npos) {
        std::array<char, 4096> bytes{};
        const ssize_t count = ::read(sockets[0], bytes.data(), bytes.size());
        ASSERT_GT(count, 0) << heard << failing.output();
        heard.append(bytes.data(), static_cast<size_t>(count));
    }
    failing.signal(SIGTERM);
    EXPECT_EQ(failing.wait(), 1) << failing.output();
    ::close(sockets[0]);
    EXPECT_EQ(numbers(2, 0, "SELECT exit_code FROM process"), std::vector<double>{1});
    EXPECT_EQ(numbers(2, 0, "SELECT count(*) FROM step WHERE state IN ('nan', 'inf')"), std::vector<double>{1});
}

TEST_F(WorkerRun, TorchrunStartsItUnchanged)
{
    const char *deps = std::getenv("SHARDSCOPE_DEPS");
    const auto torchrun = std::filesystem::path(deps ? deps : ".deps") / "venv/bin/torchrun";
    if (!std::filesystem::exists(torchrun))
        GTEST_SKIP() << torchrun << " is missing (packaging/setup.sh puts it there)";
    std::vector<std::string> all = {torchrun.string(),         "--no-python", "--nproc-per-node", "2", "--master-port",
                                    std::to_string(freePort())};
    const auto worker = command({"--set", "train.steps=4"});
    all.insert(all.end(), worker.begin(), worker.end());
    Program program(all, environment(), log());
    ASSERT_EQ(program.wait(120), 0) << program.output();
    EXPECT_EQ(status().state, RunState::Done);
    EXPECT_EQ(recordedLosses(1, 0).size(), 4U);
    EXPECT_EQ(recordedLosses(1, 0), recordedLosses(1, 1));
}

} // namespace
