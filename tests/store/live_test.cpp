// SPDX-License-Identifier: Apache-2.0
// Reading while another thread or process writes, and where the reader may not write.
#include "profiler/store/recording.h"

#include "profiler/store/database_file.h"
#include "profiler/store/schema.h"
#include "recording_fixture.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <iostream>
#include <optional>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace shardscope::store {
namespace {

class LiveTest : public testing::Test
{
protected:
    Recording open()
    {
        auto recording = Recording::open(run(), {.cacheFolder = m_folder.path() / "cache"});
        if (!recording)
            throw std::runtime_error(recording.error().text);
        return std::move(*recording);
    }
    std::filesystem::path run() const { return m_folder.path() / "run"; }
    test::TemporaryFolder m_folder;
};

Index laneNamed(const Catalog &catalog, Index process, std::string_view name)
{
    for (size_t i = 0; i < catalog.lanes.size(); ++i) {
        if (catalog.lanes[i].process == process && catalog.lanes[i].name == name)
            return static_cast<Index>(i);
    }
    return kNone;
}

TEST_F(LiveTest, TheTailTellsWhereToReadAgain)
{
    auto live = test::LiveFixture::start(run());
    ASSERT_TRUE(live);
    Recording recording = open();
    EXPECT_FALSE(recording.catalog()->finished);
    const Index rank0 = recording.catalog()->rankProcess(1, 0);
    std::vector<int64_t> seen(recording.catalog()->processes.size());
    const auto tailOf = [&](Index process) {
        const auto tails = recording.tail(seen);
        if (!tails)
            throw std::runtime_error(tails.error().text);
        for (const Tail &tail : *tails) {
            if (tail.process == process) {
                seen[static_cast<size_t>(process)] = tail.lastFlushId;
                return tail;
            }
        }
        throw std::runtime_error("no tail");
    };
    EXPECT_FALSE(tailOf(rank0).firstStartNs); // lanes and units, no spans yet
    EXPECT_FALSE(tailOf(rank0).changed);

    ASSERT_TRUE(live->writeStep());
    const Tail first = tailOf(rank0);
    EXPECT_EQ(first.firstStartNs, 1'000'000);
    ASSERT_TRUE(live->writeStep());
    const Tail second = tailOf(rank0);
    EXPECT_EQ(second.firstStartNs, 11'000'000);
    ASSERT_TRUE(recording.refresh()); // the names of the spans
    const Index lane = laneNamed(*recording.catalog(), rank0, "compute");
    const auto fresh = recording.spansStarting(lane, *second.firstStartNs);
    ASSERT_TRUE(fresh);
    EXPECT_EQ(fresh->size(), 13u);
    EXPECT_EQ(fresh->step[0], 1);
    EXPECT_NE(fresh->name[0], kNone);
    EXPECT_EQ(recording.spans(lane)->size(), 26u);
    ASSERT_TRUE(live->finish());
    ASSERT_TRUE(recording.refresh());
    EXPECT_TRUE(recording.catalog()->finished);
}

TEST_F(LiveTest, AWatchingReaderDoesNotKeepTheWriterFromOneFile)
{
    auto live = test::LiveFixture::start(run());
    ASSERT_TRUE(live);
    ASSERT_TRUE(live->writeStep());
    Recording recording = open();
    ASSERT_TRUE(recording.steps(recording.catalog()->rankProcess(1, 0)));
    ASSERT_TRUE(live->finish());
    EXPECT_FALSE(std::filesystem::exists(run() / "attempt-1" / "rank-0.sqlite-wal"));
    ASSERT_TRUE(recording.refresh());
    EXPECT_EQ(recording.steps(recording.catalog()->rankProcess(1, 0))->size(), 1u);
}

TEST_F(LiveTest, IndicesStayWhileTheRecordingGrows)
{
    auto live = test::LiveFixture::start(run(), {.steps = 30});
    ASSERT_TRUE(live);
    Recording recording = open();
    const auto before = recording.catalog();
    std::atomic<bool> failed = false;
    std::jthread writer([&] {
        for (int step = 0; step < 30; ++step)
            failed = failed || !live->writeStep();
        failed = failed || !live->finish();
    });
    const Index rank0 = before->rankProcess(1, 0);
    const Index lane = laneNamed(*before, rank0, "compute");
    size_t spans = 0, steps = 0;
    while (true) {
        const auto catalog = recording.refresh();
        ASSERT_TRUE(catalog) << catalog.error().text;
        for (size_t i = 0; i < before->lanes.size(); ++i)
            ASSERT_EQ((*catalog)->lanes[i].name, before->lanes[i].name);
        // What a commit holds is seen whole: a step with its 13 spans.
        const auto stepsNow = recording.steps(rank0);
        const auto spansNow = recording.spans(lane);
        const auto calls = recording.collectives();
        ASSERT_TRUE(stepsNow) << stepsNow.error().text;
        ASSERT_TRUE(spansNow) << spansNow.error().text;
        ASSERT_TRUE(calls) << calls.error().text;
        EXPECT_EQ(spansNow->size() % 13, 0u);
        EXPECT_GE(spansNow->size(), spans);
        EXPECT_GE(stepsNow->size(), steps);
        EXPECT_GE(spansNow->size() / 13, stepsNow->size());
        spans = spansNow->size();
        steps = stepsNow->size();
        if ((*catalog)->finished)
            break;
    }
    writer.join();
    EXPECT_FALSE(failed);
    ASSERT_TRUE(recording.refresh());
    EXPECT_EQ(recording.steps(rank0)->size(), 30u);
}

TEST_F(LiveTest, SqlOnALiveRunSeesWhatIsCommitted)
{
    auto live = test::LiveFixture::start(run());
    ASSERT_TRUE(live);
    Recording recording = open();
    for (int64_t steps = 1; steps <= 3; ++steps) {
        ASSERT_TRUE(live->writeStep());
        const auto rows = recording.sql("SELECT count(*) FROM step");
        ASSERT_TRUE(rows) << rows.error().text;
        EXPECT_EQ(std::get<int64_t>(rows->rows[0][0]), 2 * steps);
    }
}

/// Runs a function in a child without root's rights; true if it returned true.
bool asNobody(const std::function<bool()> &function)
{
    constexpr uid_t kNobody = 65534;
    std::cout.flush();
    const pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setresgid(kNobody, kNobody, kNobody) != 0 || setresuid(kNobody, kNobody, kNobody) != 0))
            _exit(2);
        _exit(function() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(LiveTest, AReadOnlyFolderIsReadWithItsLog)
{
    // As a rank that was killed leaves it: the last commits are in the log, and the `-shm` is gone.
    {
        auto live = test::LiveFixture::start(run(), {.ranks = 1});
        ASSERT_TRUE(live);
        for (int step = 0; step < 3; ++step)
            ASSERT_TRUE(live->writeStep());
        std::filesystem::copy(run(), m_folder.path() / "copy", std::filesystem::copy_options::recursive);
    }
    const auto attempt = m_folder.path() / "copy" / "attempt-1";
    ASSERT_GT(std::filesystem::file_size(attempt / "rank-0.sqlite-wal"), 0u);
    std::filesystem::remove(attempt / "rank-0.sqlite-shm");
    std::filesystem::remove(attempt / "supervisor.sqlite-shm");
    std::filesystem::create_directories(m_folder.path() / "cache");
    using std::filesystem::perms;
    std::filesystem::permissions(m_folder.path(), perms::all);
    std::filesystem::permissions(m_folder.path() / "cache", perms::all);
    for (const auto &entry : std::filesystem::directory_iterator(attempt))
        std::filesystem::permissions(entry.path(), perms::owner_read | perms::group_read | perms::others_read);
    std::filesystem::permissions(attempt,
                                 perms::owner_read | perms::owner_exec | perms::others_read | perms::others_exec);

    const bool read = asNobody([&] {
        auto recording = Recording::open(m_folder.path() / "copy", {.cacheFolder = m_folder.path() / "cache"});
        if (!recording || !recording->catalog()->problems.empty()) {
            std::cerr << (recording ? recording->catalog()->problems[0] : recording.error().text) << "\n";
            return false;
        }
        const auto steps = recording->steps(recording->catalog()->rankProcess(1, 0));
        const auto rows = recording->sql("SELECT count(*) FROM step");
        return steps && steps->size() == 3 && rows && std::get<int64_t>(rows->rows[0][0]) == 3;
    });
    EXPECT_TRUE(read);
    EXPECT_FALSE(std::filesystem::exists(attempt / "rank-0.sqlite-shm"));
    std::filesystem::permissions(attempt, perms::owner_all);
    // The private copies are gone with their reader.
    EXPECT_TRUE(std::filesystem::is_empty(m_folder.path() / "cache" / "copies"));
}

/// What another process does in steps that this one asks for.
class Helper
{
public:
    explicit Helper(const std::function<bool(int step)> &work)
    {
        int ask[2], answer[2];
        if (pipe(ask) != 0 || pipe(answer) != 0)
            throw std::runtime_error("no pipes");
        std::cout.flush();
        m_child = fork();
        if (m_child == 0) {
            close(ask[1]);
            char byte = 0;
            for (int step = 0; read(ask[0], &byte, 1) == 1; ++step) {
                byte = work(step) ? 'y' : 'n';
                if (write(answer[1], &byte, 1) != 1)
                    break;
            }
            _exit(0);
        }
        close(ask[0]);
        close(answer[1]);
        m_ask = ask[1];
        m_answer = answer[0];
    }
    ~Helper()
    {
        close(m_ask);
        close(m_answer);
        waitpid(m_child, nullptr, 0);
    }
    bool next()
    {
        char byte = 'n';
        return write(m_ask, &byte, 1) == 1 && read(m_answer, &byte, 1) == 1 && byte == 'y';
    }

private:
    pid_t m_child = -1;
    int m_ask = -1;
    int m_answer = -1;
};

TEST_F(LiveTest, AReadOnlyFolderThatIsWrittenIsNotCopiedAtEveryLook)
{
    if (geteuid() != 0)
        GTEST_SKIP() << "needs two users: one that writes and one that may only read";
    using std::filesystem::perms;
    std::filesystem::permissions(m_folder.path(), perms::all);
    std::optional<test::LiveFixture> live; // of the other process
    Helper writer([&](int step) {
        if (step == 0) {
            auto started = test::LiveFixture::start(run(), {.ranks = 1});
            if (!started)
                return false;
            live.emplace(std::move(*started));
        }
        if (step < 3)
            return live->writeStep().has_value();
        return live->finish().has_value();
    });
    ASSERT_TRUE(writer.next());
    // Where the writer's `-shm` can be read, SQLite needs no copy: as if it were on another machine.
    for (const char *name : {"rank-0.sqlite-shm", "supervisor.sqlite-shm"})
        std::filesystem::permissions(run() / "attempt-1" / name, perms::none);

    struct AsNobody
    {
        AsNobody() { done = seteuid(65534) == 0; }
        ~AsNobody() { done = seteuid(0) == 0; }
        bool done;
    } user;
    ASSERT_TRUE(user.done);
    const auto stepsOf = [](const Recording &recording) {
        const auto steps = recording.steps(recording.catalog()->rankProcess(1, 0));
        return steps ? static_cast<int>(steps->size()) : -1;
    };
    Recording recording = open();
    EXPECT_EQ(stepsOf(recording), 1);
    ASSERT_TRUE(writer.next());
    ASSERT_TRUE(recording.refresh());
    EXPECT_EQ(stepsOf(recording), 1) << "it was copied again within " << DatabaseFile::kCopyInterval.count() << " s";
    ASSERT_TRUE(writer.next());
    ASSERT_TRUE(writer.next());
    ASSERT_TRUE(recording.refresh());
    EXPECT_EQ(stepsOf(recording), 3) << "the end of a run is read at once";
}

/// A writer that opens or closes its database can be in a reader's way for a moment.
TEST_F(LiveTest, AMomentWithoutTheDatabaseDoesNotMeanACopy)
{
    ASSERT_TRUE(test::writeFixtureRecording(run(), {.ranks = 1}));
    const auto database = run() / "attempt-1" / "rank-0.sqlite";
    const auto away = run() / "away.sqlite";
    std::filesystem::rename(database, away);
    DatabaseFile file(database, m_folder.path() / "cache");
    const auto prepared = file.prepare();
    ASSERT_FALSE(prepared);
    EXPECT_EQ(prepared.error().trouble, FileTrouble::Unreadable);
    std::filesystem::rename(away, database);
    EXPECT_TRUE(file.prepare());
    EXPECT_EQ(file.readablePath(), database);
    EXPECT_FALSE(std::filesystem::exists(m_folder.path() / "cache" / "copies"));
}

} // namespace
} // namespace shardscope::store
