// SPDX-License-Identifier: Apache-2.0
// The supervisor with real processes: fake_rank.cpp is a rank without a model.
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/control/control_client.h"
#include "core/launch/supervisor.h"
#include "core/run/process_identity.h"
#include "tests/support/temporary_folder.h"

#include <QCoreApplication>
#include <QSignalSpy>
#include <QTest>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace shardscope;
using namespace shardscope::launch;
using namespace std::chrono_literals;
using shardscope::control::ControlClient;
using shardscope::control::RequestKind;
using testing::Contains;
using testing::HasSubstr;

/// Beside this test.
static fs::path fakeRank()
{
    return fs::read_symlink("/proc/self/exe").parent_path() / "shardscope_fake_rank";
}

/// Keeps what it is told: "death: rank 1 was killed by signal 9 (SIGKILL)".
class Listener : public observe::Observer
{
public:
    void event(EventKind kind, std::string_view text, std::string_view detailJson,
               std::optional<int64_t> /*step*/) override
    {
        events.push_back(fmt::format("{}: {}", toText(kind), text));
        details.emplace_back(detailJson);
    }
    std::vector<std::string> events;
    std::vector<std::string> details;
};

class SupervisorTest : public testing::Test
{
protected:
    SupervisorTest()
    {
        ::setenv("XDG_RUNTIME_DIR", m_temporary.path().c_str(), 1);
        plan.worker = fakeRank();
        plan.ranks = 2;
        plan.cores = 2;
        fs::create_directories(plan.folder.root());
    }
    ~SupervisorTest() override { ::unsetenv("XDG_RUNTIME_DIR"); }

    /// Makes attempt 1 and starts it.
    Supervisor &start(const std::string &deeds, int steps = 5, int stepMs = 10)
    {
        plan.environment["FAKE_RANK"] = deeds;
        plan.environment["FAKE_STEPS"] = std::to_string(steps);
        plan.environment["FAKE_STEP_MS"] = std::to_string(stepMs);
        EXPECT_TRUE(plan.folder.createAttempt(1));
        EXPECT_TRUE(writeFileAtomically(plan.folder.configFile(1), "{}"));
        auto lock = run::RunLock::acquire(plan.folder);
        EXPECT_TRUE(lock);
        supervisor = std::make_unique<Supervisor>(plan, std::move(*lock), listener);
        const auto started = supervisor->start();
        EXPECT_TRUE(started) << started.error().text;
        return *supervisor;
    }
    /// Runs the event loop until the run has ended; returns the seconds that took.
    double waitForEnd()
    {
        QSignalSpy finished(supervisor.get(), &Supervisor::finished);
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_TRUE(finished.wait(120'000));
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    /// Runs the event loop until this many steps are done.
    void waitForStep(int64_t step)
    {
        QSignalSpy steps(supervisor.get(), &Supervisor::stepDone);
        while (supervisor->status().step.value_or(0) < step)
            ASSERT_TRUE(steps.wait(60'000));
    }
    /// Runs the event loop until the condition holds: until another thread has done something.
    static void runUntil(const std::function<bool()> &condition)
    {
        while (!condition())
            QCoreApplication::processEvents(QEventLoop::AllEvents, 10);
    }
    template <typename Answer>
    static Answer waitFor(std::future<Answer> answer)
    {
        runUntil([&] { return answer.wait_for(1ms) == std::future_status::ready; });
        return answer.get();
    }
    /// A client's request from another thread.
    std::future<Result<nlohmann::json>> startToAsk(RequestKind kind)
    {
        return std::async(std::launch::async, [this, kind]() -> Result<nlohmann::json> {
            auto client = ControlClient::connect(plan.folder);
            return client ? client->request(kind, 60s) : tl::unexpected(client.error());
        });
    }
    Result<nlohmann::json> ask(RequestKind kind) { return waitFor(startToAsk(kind)); }
    tl::expected<nlohmann::json, ControlClient::Refusal> askLive(const control::Request &request)
    {
        using Answer = tl::expected<nlohmann::json, ControlClient::Refusal>;
        return waitFor(std::async(std::launch::async, [&]() -> Answer {
            auto client = ControlClient::connect(plan.folder);
            return client ? client->send(request, 60s) : Answer(tl::unexpected(ControlClient::Refusal({"no client"})));
        }));
    }
    void expectFreeOnceAnswered(RequestKind kind);
    run::RunStatus stateFile() const { return run::readStatus(plan.folder).value(); }

private:
    test::TemporaryFolder m_temporary;

protected:
    LaunchPlan plan{.folder = run::RunFolder(m_temporary.path() / "a run \"1\" für 語")};
    Listener listener;
    std::unique_ptr<Supervisor> supervisor;
};

TEST_F(SupervisorTest, runsToTheEndAndSaysSo)
{
    start("");
    EXPECT_TRUE(run::isLocked(plan.folder));
    EXPECT_EQ(stateFile().state, RunState::Starting);
    waitForEnd();
    const run::RunStatus status = stateFile();
    EXPECT_EQ(status.state, RunState::Done);
    EXPECT_EQ(status.step, 5);
    EXPECT_EQ(status.steps, 5);
    EXPECT_DOUBLE_EQ(status.loss.value(), 2.0);
    EXPECT_EQ(status.peakAllocatedBytes, 2000);
    EXPECT_DOUBLE_EQ(status.exposedCommunicationShare.value(), 0.25);
    EXPECT_DOUBLE_EQ(status.tokensPerSecond.value(), 200'000.0);
    EXPECT_FALSE(status.failure);
    EXPECT_TRUE(status.socket.empty());
    EXPECT_TRUE(status.endedNs);
    ASSERT_EQ(status.ranks.size(), 2u);
    EXPECT_EQ(status.ranks[1].exitCode, 0);
    EXPECT_FALSE(supervisor->interrupted());
    EXPECT_EQ(readTextFile(plan.folder.logFile(1, 1)).value(), "rank 1 of 2 begins\n");
    EXPECT_TRUE(fs::is_empty(fs::path(::getenv("XDG_RUNTIME_DIR")) / "shardscope")) << "the socket is removed";
}

/// Who hears that the run has ended may go on with it at once, and nobody may while its folder is still written.
void SupervisorTest::expectFreeOnceAnswered(RequestKind kind)
{
    start("", 1'000'000, 2);
    waitForStep(2);
    bool lockedAtLast = false;
    std::optional<RunState> stateAtLast;
    QObject::connect(supervisor.get(), &Supervisor::ending, [&] {
        lockedAtLast = run::isLocked(plan.folder);
        stateAtLast = stateFile().state;
    });
    const fs::path socket = supervisor->status().socket;
    ASSERT_TRUE(fs::exists(socket));
    const bool freeOnceAnswered = waitFor(std::async(std::launch::async, [&] {
        auto client = ControlClient::connect(plan.folder);
        return client && client->request(kind, 60s) && !run::isLocked(plan.folder) && !fs::exists(socket) &&
               stateFile().state == RunState::Done;
    }));
    EXPECT_TRUE(freeOnceAnswered);
    EXPECT_TRUE(lockedAtLast);
    EXPECT_EQ(stateAtLast, RunState::Stopping) << "who reads state.json may go on as well";
}

TEST_F(SupervisorTest, isFreeOnceItsStopIsAnswered)
{
    expectFreeOnceAnswered(RequestKind::Stop);
}

TEST_F(SupervisorTest, isFreeOnceItsStopNowIsAnswered)
{
    expectFreeOnceAnswered(RequestKind::StopNow);
}

// A rank that dies ends the run within 5 s: what the supervisor allows itself leaves half of them to the machine.
static_assert(Supervisor::kSettleMs + Supervisor::kPatienceMs <= 2500);

TEST_F(SupervisorTest, aKilledRankEndsTheRun)
{
    start("rank=1 die@3=9", 1000);
    waitForEnd();
    const run::RunStatus status = stateFile();
    EXPECT_EQ(status.state, RunState::Failed);
    ASSERT_TRUE(status.failure);
    EXPECT_EQ(status.failure->rank, 1);
    EXPECT_EQ(status.failure->signal, 9);
    EXPECT_FALSE(status.failure->exitCode);
    EXPECT_THAT(status.failure->text, HasSubstr("rank 1: die after step 3"));
    EXPECT_EQ(status.ranks[0].signal, SIGTERM) << "the other one was ended";
    EXPECT_FALSE(run::processStartTicks(status.ranks[0].pid));
    EXPECT_THAT(listener.events, Contains("death: rank 1 was killed by signal 9 (SIGKILL)"));
    EXPECT_THAT(listener.details, Contains(HasSubstr("\"signal\":9")));
}

TEST_F(SupervisorTest, aRankThatIgnoresTheEndIsKilled)
{
    start("rank=0 hang@2 rank=1 exit@2=7", 1000);
    waitForEnd();
    const run::RunStatus status = stateFile();
    EXPECT_EQ(status.failure->rank, 1);
    EXPECT_EQ(status.failure->exitCode, 7);
    EXPECT_EQ(status.ranks[0].signal, SIGKILL);
}

TEST_F(SupervisorTest, aRankThatHasSaidWhyItFailsHasTimeToCloseItsRecording)
{
    constexpr int kBetweenMs = Supervisor::kSettleMs + Supervisor::kPatienceMs + 500;
    static_assert(kBetweenMs < Supervisor::kClosingMs);
    start(fmt::format("rank=0 hang@2 rank=1 closing@2={}", kBetweenMs), 1000);
    waitForEnd();
    const run::RunStatus status = stateFile();
    EXPECT_EQ(status.failure->rank, 1);
    EXPECT_EQ(status.ranks[0].signal, SIGKILL) << "it said nothing";
    EXPECT_EQ(status.ranks[1].exitCode, 1) << "it ended by itself";
}

TEST_F(SupervisorTest, aRanksOwnWordsAreTheReason)
{
    start("rank=0 collective@3 rank=1 fail@3=out_of_memory", 1000);
    waitForEnd();
    const run::RunFailure failure = stateFile().failure.value();
    EXPECT_EQ(failure.rank, 1) << "rank 0 failed only because rank 1 had";
    EXPECT_EQ(failure.text, "out_of_memory");
    EXPECT_EQ(failure.exitCode, 1);
}

TEST_F(SupervisorTest, saysThatTheWorkerCannotBeStarted)
{
    plan.worker = "/nonexistent/shardscope-worker";
    ASSERT_TRUE(plan.folder.createAttempt(1));
    Supervisor failing(plan, run::RunLock::acquire(plan.folder).value(), listener);
    const auto started = failing.start();
    ASSERT_FALSE(started);
    EXPECT_THAT(started.error().text, HasSubstr("/nonexistent/shardscope-worker"));
    EXPECT_EQ(stateFile().state, RunState::Failed);
    EXPECT_THAT(stateFile().failure->text, HasSubstr("Can't start rank 0"));
}

TEST_F(SupervisorTest, pausesAndGoesOn)
{
    start("", 100'000, 5);
    waitForStep(2);
    const auto paused = ask(RequestKind::Pause);
    ASSERT_TRUE(paused) << paused.error().text;
    EXPECT_EQ(stateFile().state, RunState::Paused);
    const int64_t step = (*paused)["step"];
    EXPECT_GE(step, 4) << "in force two steps after it was heard";
    const auto checkpoint = ask(RequestKind::Checkpoint);
    ASSERT_TRUE(checkpoint) << checkpoint.error().text;
    EXPECT_EQ((*checkpoint)["step"], step);
    EXPECT_EQ(stateFile().state, RunState::Paused) << "a checkpoint does not end the pause";
    EXPECT_EQ(files::CheckpointFolder(plan.folder.checkpointsFolder()).newest()->step, step);
    EXPECT_EQ(supervisor->status().step, step) << "no step while it is paused";
    EXPECT_EQ(supervisor->status().checkpointStep, step);
    const auto running = ask(RequestKind::Unpause);
    ASSERT_TRUE(running) << running.error().text;
    waitForStep(step + 3);
    ASSERT_TRUE(ask(RequestKind::Stop));
    EXPECT_EQ(stateFile().state, RunState::Done);
    EXPECT_THAT(listener.events, testing::IsSupersetOf({"command: pause", "command: unpause", "command: checkpoint"}));
}

TEST_F(SupervisorTest, aPeriodicCheckpointDoesNotAnswerACommand)
{
    plan.environment["FAKE_PERIODIC_CHECKPOINTS"] = "1"; // two come before the command is in force
    start("", 100'000, 5);
    waitForStep(2);
    const auto checkpoint = ask(RequestKind::Checkpoint);
    ASSERT_TRUE(checkpoint) << checkpoint.error().text;
    const int64_t step = (*checkpoint)["step"];
    EXPECT_EQ((*checkpoint)["path"], files::CheckpointFolder(plan.folder.checkpointsFolder()).pathOf(step).string());
    ASSERT_TRUE(ask(RequestKind::StopNow));
}

TEST_F(SupervisorTest, aLostRecordingIsToldEverywhere)
{
    start("rank=1 unrecorded@2=disk_full", 5);
    QSignalSpy messages(supervisor.get(), &Supervisor::message);
    waitForEnd();
    EXPECT_EQ(stateFile().recordingProblem, "Rank 1: disk_full");
    EXPECT_EQ(stateFile().state, RunState::Done);
    EXPECT_THAT(listener.events, Contains("warning: disk_full"));
    EXPECT_TRUE(std::ranges::any_of(
        messages, [](const auto &message) { return message[0].toString() == QStringLiteral("Rank 1: disk_full"); }));
}

TEST_F(SupervisorTest, aControlSocketThatVanishedIsMadeAnew)
{
    start("", 100'000, 5);
    waitForStep(1);
    const fs::path socket = stateFile().socket;
    ASSERT_TRUE(fs::is_socket(socket));
    fs::remove_all(socket.parent_path()); // as logind does with the last session of a user
    QSignalSpy messages(supervisor.get(), &Supervisor::message);
    EXPECT_TRUE(QTest::qWaitFor([&socket] { return fs::is_socket(socket); }, 20'000))
        << (messages.isEmpty() ? "" : messages[0][0].toString().toStdString());
    const auto paused = ask(RequestKind::Pause);
    EXPECT_TRUE(paused) << paused.error().text;
    ASSERT_TRUE(ask(RequestKind::StopNow));
    EXPECT_FALSE(fs::exists(socket));
    EXPECT_EQ(stateFile().ranks[1].state, RunState::Done) << "it was ended, it did not fail";
}

TEST_F(SupervisorTest, stopsWithACheckpointAlsoWhilePaused)
{
    start("", 100'000, 5);
    waitForStep(1);
    ASSERT_TRUE(ask(RequestKind::Pause));
    const auto stopped = ask(RequestKind::Stop);
    ASSERT_TRUE(stopped) << stopped.error().text;
    EXPECT_EQ((*stopped)["state"], "done");
    EXPECT_EQ(stateFile().state, RunState::Done);
    EXPECT_EQ(files::CheckpointFolder(plan.folder.checkpointsFolder()).newest()->step, stateFile().step);
}

TEST_F(SupervisorTest, refusesACommandThatTheRunsEndOvertook)
{
    // Rank 1 stands still after step 8, so that a pause which is asked for later can't come into force.
    start("rank=1 stop@8", 1000);
    waitForStep(7);
    auto answer = startToAsk(RequestKind::Pause);
    runUntil([&] { return std::ranges::count(listener.events, "command: pause") > 0; });
    const auto rank = static_cast<pid_t>(supervisor->status().ranks[1].pid);
    ::kill(rank, SIGSEGV);
    ::kill(rank, SIGCONT);
    const auto paused = waitFor(std::move(answer));
    ASSERT_FALSE(paused);
    EXPECT_THAT(paused.error().text, HasSubstr("SIGSEGV"));
}

TEST_F(SupervisorTest, firstInterruptStopsSecondEndsNow)
{
    start("", 100'000, 5);
    waitForStep(2);
    supervisor->interrupt();
    EXPECT_EQ(stateFile().state, RunState::Stopping);
    waitForEnd();
    EXPECT_EQ(stateFile().state, RunState::Done);
    EXPECT_TRUE(supervisor->interrupted());
    EXPECT_TRUE(files::CheckpointFolder(plan.folder.checkpointsFolder()).newest());
}

TEST_F(SupervisorTest, secondInterruptEndsNow)
{
    start("hang@3", 100'000, 5);
    waitForStep(3);
    supervisor->interrupt();
    supervisor->interrupt();
    waitForEnd();
    EXPECT_EQ(stateFile().state, RunState::Done);
    EXPECT_FALSE(stateFile().failure);
    EXPECT_TRUE(supervisor->interrupted());
    EXPECT_FALSE(files::CheckpointFolder(plan.folder.checkpointsFolder()).newest());
}

TEST_F(SupervisorTest, endsARunInWhichARankHangs)
{
    plan.hangNs = 5'000'000'000; // more than ranks need to start on a busy machine
    start("rank=1 stop@3", 100'000, 5);
    EXPECT_GT(waitForEnd(), 4.0) << "it was given its time";
    const run::RunStatus status = stateFile();
    EXPECT_EQ(status.state, RunState::Failed);
    ASSERT_TRUE(status.failure);
    EXPECT_EQ(status.failure->rank, 1);
    EXPECT_THAT(status.failure->text, HasSubstr("Rank 1, which is late, is stopped by a signal (SIGSTOP) and was last "
                                                "in all_reduce 2 of block.0 (optimizer, step 3), ended"));
    EXPECT_THAT(status.failure->text, HasSubstr("Rank 0 is in all_reduce 3"));
    EXPECT_THAT(listener.events, Contains("death: rank 1 failed"));
    for (const run::RankStatus &rank : status.ranks)
        EXPECT_FALSE(run::processStartTicks(rank.pid)) << "rank " << rank.rank << " is left";
}

TEST_F(SupervisorTest, aPauseIsNoHang)
{
    plan.hangNs = 4'000'000'000;
    start("", 100'000, 5);
    waitForStep(2);
    ASSERT_TRUE(ask(RequestKind::Pause));
    QTest::qWait(6000);
    EXPECT_EQ(stateFile().state, RunState::Paused);
    ASSERT_TRUE(ask(RequestKind::Unpause));
    ASSERT_TRUE(ask(RequestKind::Stop));
    EXPECT_EQ(stateFile().state, RunState::Done);
}

TEST_F(SupervisorTest, subscribersHearOfEveryStepAndTheEnd)
{
    start("", 100'000, 10);
    std::vector<std::string> states;
    std::vector<int64_t> steps;
    std::atomic<bool> heardEnough = false;
    auto hearing = std::async(std::launch::async, [&] {
        auto client = ControlClient::connect(plan.folder);
        if (!client || !client->request(RequestKind::Subscribe, 60s))
            return;
        for (;;) {
            const auto event = client->nextEvent(60s);
            if (!event || !*event)
                return;
            if ((*event)->name == "state")
                states.push_back((*event)->data["state"].get<std::string>());
            else if ((*event)->name == "step")
                steps.push_back((*event)->data["step"]);
            heardEnough = steps.size() > 10;
        }
    });
    runUntil([&] { return heardEnough || hearing.wait_for(1ms) == std::future_status::ready; });
    ASSERT_TRUE(ask(RequestKind::Stop));
    waitFor(std::move(hearing));
    ASSERT_FALSE(states.empty() || steps.empty());
    EXPECT_EQ(states.back(), "done");
    for (size_t i = 0; i < steps.size(); ++i)
        EXPECT_EQ(steps[i], steps.front() + static_cast<int64_t>(i)) << "every step, in order";
    EXPECT_EQ(steps.back(), stateFile().step);
}

TEST_F(SupervisorTest, survivesClientsThatTalkNonsense)
{
    start("", 100'000, 10);
    waitForStep(1);
    {
        auto client = ControlClient::connect(plan.folder);
        ASSERT_TRUE(client);
        const std::string garbage = "GET / HTTP/1.1\n\n{\"version\":1,\"id\":5,\"command\":\"dance\"}\n{\"half";
        ASSERT_EQ(::write(client->fd(), garbage.data(), garbage.size()), static_cast<ssize_t>(garbage.size()));
        waitForStep(5);
    }
    EXPECT_TRUE(ask(RequestKind::Status));
    ASSERT_TRUE(ask(RequestKind::Stop));
    EXPECT_EQ(stateFile().state, RunState::Done);
}

TEST_F(SupervisorTest, ranksEndWhenTheirSupervisorIsKilled)
{
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        // A program of its own: the event loop of this process is not for two.
        ::setenv("SUPERVISOR_TEST_FOLDER", plan.folder.root().c_str(), 1);
        ::execl("/proc/self/exe", "test_launch", "--gtest_also_run_disabled_tests",
                "--gtest_filter=SupervisorProcess.DISABLED_runsForEver", nullptr);
        ::_exit(127);
    }
    const auto running = [&] {
        const auto status = run::readStatus(plan.folder);
        return status && status->state == RunState::Running;
    };
    for (int i = 0; i < 6000 && !running(); ++i)
        std::this_thread::sleep_for(10ms);
    ASSERT_TRUE(running());
    const auto ranks = stateFile().ranks;
    ASSERT_EQ(ranks.size(), 2u);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    for (const run::RankStatus &rank : ranks) {
        for (int i = 0; i < 6000 && run::processStartTicks(rank.pid); ++i)
            std::this_thread::sleep_for(10ms);
        EXPECT_FALSE(run::processStartTicks(rank.pid)) << "rank " << rank.rank << " is orphaned";
    }
    EXPECT_EQ(run::currentStatus(plan.folder, realtimeNs())->state, RunState::Lost);
}

/// What ranksEndWhenTheirSupervisorIsKilled starts and kills.
TEST(SupervisorProcess, DISABLED_runsForEver)
{
    LaunchPlan plan{.folder = run::RunFolder(::getenv("SUPERVISOR_TEST_FOLDER")), .ranks = 2};
    plan.worker = fakeRank();
    plan.environment["FAKE_STEPS"] = "1000000";
    plan.environment["FAKE_RANK"] = "rank=1 hang@5"; // SIGTERM would not end it
    ASSERT_TRUE(plan.folder.createAttempt(1));
    ASSERT_TRUE(writeFileAtomically(plan.folder.configFile(1), "{}"));
    Listener listener;
    Supervisor supervisor(plan, run::RunLock::acquire(plan.folder).value(), listener);
    ASSERT_TRUE(supervisor.start());
    QCoreApplication::exec();
}

TEST_F(SupervisorTest, aSetIsInForceOnEveryRankFromOneStepAndKeptForAResume)
{
    start("", 1'000'000, 2);
    waitForStep(3);
    const auto set =
        askLive({.kind = RequestKind::Set, .live = {{"optimizer.clip_norm=0.5"}, {"block.*:strategy=none"}}});
    ASSERT_TRUE(set) << set.error().text;
    const int64_t step = set->at("step").get<int64_t>();
    EXPECT_GT(step, 4);
    EXPECT_EQ(set->at("changed").at("optimizer.clip_norm").at("to"), "0.5");
    const std::string line =
        fmt::format("from step {}: optimizer.clip_norm: 1 → 0.5, unit 'block.*': strategy: full → none (user)\n", step);
    for (const int rank : {0, 1})
        EXPECT_THAT(readTextFile(plan.folder.logFile(1, rank)).value(),
                    HasSubstr(fmt::format("rank {} {}", rank, line)));
    config::RunConfiguration resumed;
    ASSERT_TRUE(applyInForce(resumed, plan.folder));
    EXPECT_EQ(resumed.optimizer.clipNorm, 0.5);
    EXPECT_EQ(resumed.units.size(), 1U);
    EXPECT_THAT(listener.events, Contains(HasSubstr("command: set optimizer.clip_norm: 1 → 0.5")));

    const auto again = askLive({.kind = RequestKind::Set, .live = {{"optimizer.clip_norm=0.5"}, {}}});
    ASSERT_TRUE(again) << again.error().text;
    EXPECT_TRUE(again->at("step").is_null());
    const auto undone = askLive({.kind = RequestKind::Undo});
    ASSERT_TRUE(undone) << undone.error().text;
    EXPECT_EQ(undone->at("changed").at("optimizer.clip_norm").at("to"), "1");
    EXPECT_THAT(readTextFile(plan.folder.logFile(1, 1)).value(), HasSubstr("(undo)"));
    EXPECT_EQ(askLive({.kind = RequestKind::Configuration})->at("configuration").at("optimizer").at("clip_norm"), 1.0);
    ASSERT_TRUE(ask(RequestKind::Stop));
}

TEST_F(SupervisorTest, aSetWhilePausedIsInForceAtTheNextStep)
{
    start("", 1'000'000, 2);
    waitForStep(2);
    const auto paused = ask(RequestKind::Pause);
    ASSERT_TRUE(paused) << paused.error().text;
    const auto set = askLive({.kind = RequestKind::Set, .live = {{"parallel.strategy=none"}, {}}});
    ASSERT_TRUE(set) << set.error().text;
    EXPECT_EQ(set->at("step").get<int64_t>(), paused->at("step").get<int64_t>() + 1);
    EXPECT_EQ(stateFile().state, RunState::Paused);
    ASSERT_TRUE(ask(RequestKind::Stop));
}

TEST_F(SupervisorTest, aSetThatCannotBeIsRefusedBeforeAnyRankHearsOfIt)
{
    plan.admit = [](const launch::ProposedChange &change) -> Result<config::RunConfiguration> {
        if (change.force)
            return change.next;
        return fail("Not here.");
    };
    start("", 1'000'000, 2);
    waitForStep(1);
    for (const auto &[assignment, why, forcible] : {std::tuple("parallel.strategy=none", "Not here.", true),
                                                    std::tuple("train.steps=1", "fixed while a run goes on", false)}) {
        const auto set = askLive({.kind = RequestKind::Set, .live = {{assignment}, {}}});
        ASSERT_FALSE(set);
        EXPECT_THAT(set.error().text, HasSubstr(why));
        EXPECT_TRUE(set.error().refused);
        EXPECT_EQ(set.error().forcible, forcible);
    }
    EXPECT_THAT(askLive({.kind = RequestKind::Undo}).error().text, HasSubstr("nothing to undo"));
    ASSERT_TRUE(ask(RequestKind::Stop));
    EXPECT_EQ(readTextFile(plan.folder.logFile(1, 0)).value(), "rank 0 of 2 begins\n");
}
