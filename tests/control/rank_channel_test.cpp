// SPDX-License-Identifier: Apache-2.0
#include "core/control/rank_channel.h"

#include "tests/support/no_descriptors.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace shardscope::control;
using namespace std::chrono_literals;

/// The supervisor's end of a channel.
class SupervisorEnd
{
public:
    SupervisorEnd()
    {
        std::array<int, 2> ends{};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0) {
            m_fd = ends[0];
            rankFd = ends[1];
        }
    }
    ~SupervisorEnd() { close(); }
    void close()
    {
        if (m_fd >= 0)
            ::close(std::exchange(m_fd, -1));
    }
    void write(const std::string &text)
    {
        ASSERT_EQ(::send(m_fd, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
    }
    /// The next message; fails after 5 s.
    std::optional<RankMessage> next()
    {
        while (m_messages.empty()) {
            pollfd waiting{m_fd, POLLIN, 0};
            char bytes[4096];
            if (::poll(&waiting, 1, 5000) <= 0)
                return std::nullopt;
            const ssize_t got = ::read(m_fd, bytes, sizeof bytes);
            if (got <= 0)
                return std::nullopt;
            for (const std::string &line : m_lines.add({bytes, static_cast<size_t>(got)}))
                m_messages.push_back(messageFromLine(line).value());
        }
        RankMessage message = m_messages.front();
        m_messages.pop_front();
        return message;
    }

    int rankFd = -1;

private:
    int m_fd = -1;
    LineSplitter m_lines;
    std::deque<RankMessage> m_messages;
};

static std::optional<Order> pollWithin(RankChannel &channel, std::chrono::milliseconds patience)
{
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (;;) {
        if (const auto command = channel.poll())
            return command;
        if (std::chrono::steady_clock::now() > deadline)
            return std::nullopt;
        std::this_thread::sleep_for(1ms);
    }
}

TEST(RankChannel, isInertWithoutASupervisor)
{
    ::unsetenv("SHARDSCOPE_CONTROL_FD");
    const auto channel = RankChannel::fromEnvironment();
    EXPECT_FALSE(channel->hasSupervisor());
    channel->send(PausedMessage{1});
    EXPECT_FALSE(channel->poll());
    EXPECT_EQ(channel->waitWhilePaused(1), Command::Unpause);
    EXPECT_TRUE(channel->flush(0));
}

TEST(RankChannel, isInertWhereTheVariableNamesNoFd)
{
    for (const char *value : {"", "x", "-1", "1", "999999", "7x"}) {
        ::setenv("SHARDSCOPE_CONTROL_FD", value, 1);
        EXPECT_FALSE(RankChannel::fromEnvironment()->hasSupervisor()) << value;
        EXPECT_EQ(std::getenv("SHARDSCOPE_CONTROL_FD"), nullptr) << "it is not for children";
    }
}

TEST(RankChannel, takesTheInheritedFd)
{
    SupervisorEnd supervisor;
    ::setenv("SHARDSCOPE_CONTROL_FD", std::to_string(supervisor.rankFd).c_str(), 1);
    const auto channel = RankChannel::fromEnvironment([] {});
    ASSERT_TRUE(channel->hasSupervisor());
    channel->send(ReadyMessage{1, 1, 20, "cpu"});
    const auto message = supervisor.next();
    ASSERT_TRUE(message && std::holds_alternative<ReadyMessage>(*message));
    EXPECT_EQ(std::get<ReadyMessage>(*message).steps, 20);
}

TEST(RankChannel, readsCommandsInPartsAndSkipsGarbage)
{
    SupervisorEnd supervisor;
    RankChannel channel(supervisor.rankFd, [] {});
    EXPECT_FALSE(channel.poll());
    supervisor.write("{\"comm");
    supervisor.write("and\":\"pause\"}\nnonsense\n{\"command\":\"fly\"}\n{\"command\":\"stop\"}\n");
    EXPECT_EQ(pollWithin(channel, 60s), Command::Pause);
    EXPECT_EQ(pollWithin(channel, 60s), Command::Stop);
    EXPECT_FALSE(channel.poll());
}

TEST(RankChannel, waitsWhilePausedUntilACommandComes)
{
    SupervisorEnd supervisor;
    RankChannel channel(supervisor.rankFd, [] {});
    std::thread answering([&] {
        const auto paused = supervisor.next();
        ASSERT_TRUE(paused && std::holds_alternative<PausedMessage>(*paused));
        EXPECT_EQ(std::get<PausedMessage>(*paused).step, 12);
        supervisor.write(toLine(Command::Pause) + "\n" + toLine(Command::Unpause) + "\n");
    });
    EXPECT_EQ(channel.waitWhilePaused(12), Command::Unpause);
    answering.join();
    const auto running = supervisor.next();
    ASSERT_TRUE(running && std::holds_alternative<RunningMessage>(*running));
}

TEST(RankChannel, keepsChangesApartFromOrdersUntilTheyAreWanted)
{
    SupervisorEnd supervisor;
    RankChannel channel(supervisor.rankFd, [] {});
    const ConfigurationChange first{.number = 1, .text = "one"};
    const ConfigurationChange second{.number = 2, .text = "two"};
    supervisor.write(toLine(first) + "\n" + toLine(second) + "\n" + toLine(Order(Command::Set, 2)) + "\n");
    EXPECT_EQ(pollWithin(channel, 60s), Order(Command::Set, 2));
    EXPECT_FALSE(channel.poll());
    EXPECT_EQ(channel.waitForChange(2), second);
}

TEST(RankChannel, aLateRankWaitsForTheChangeThatTheOthersHave)
{
    SupervisorEnd supervisor;
    RankChannel channel(supervisor.rankFd, [] {});
    const ConfigurationChange change{.number = 3, .text = "late"};
    std::thread sending([&] {
        std::this_thread::sleep_for(50ms);
        supervisor.write(toLine(change) + "\n");
    });
    EXPECT_EQ(channel.waitForChange(3), change);
    sending.join();
}

TEST(RankChannel, waitsForNoChangeOfASupervisorThatHasDied)
{
    auto supervisor = std::make_unique<SupervisorEnd>();
    RankChannel channel(supervisor->rankFd, [] {});
    supervisor.reset();
    EXPECT_FALSE(channel.waitForChange(1));
    RankChannel inert(-1, [] {});
    EXPECT_FALSE(inert.waitForChange(1));
}

TEST(RankChannel, neverWaitsForASupervisorThatDoesNotRead)
{
    SupervisorEnd supervisor;
    RankChannel channel(supervisor.rankFd, [] {});
    for (int64_t step = 1; step <= 20'000; ++step)
        channel.send(StepMessage{.step = step});
    channel.send(FailureMessage{"the end"});
    EXPECT_FALSE(channel.flush(10));
    // What is kept is in order, whole, and has the last step and what is no step.
    int64_t last = 0;
    for (;;) {
        const auto message = supervisor.next();
        ASSERT_TRUE(message);
        if (std::holds_alternative<FailureMessage>(*message))
            break;
        const int64_t step = std::get<StepMessage>(*message).step;
        EXPECT_GT(step, last);
        last = step;
    }
    EXPECT_EQ(last, 20'000);
    EXPECT_TRUE(channel.flush(60'000));
}

TEST(RankChannel, sendsWhatIsQueuedBeforeItEnds)
{
    SupervisorEnd supervisor;
    {
        RankChannel channel(supervisor.rankFd, [] {});
        channel.send(FailureMessage{"last words", 4});
    }
    const auto message = supervisor.next();
    ASSERT_TRUE(message);
    EXPECT_EQ(std::get<FailureMessage>(*message).text, "last words");
}

TEST(RankChannel, tellsOnceThatTheSupervisorHasDied)
{
    SupervisorEnd supervisor;
    std::atomic<int> told = 0;
    RankChannel channel(supervisor.rankFd, [&] { ++told; });
    std::thread dying([&] {
        std::this_thread::sleep_for(20ms);
        supervisor.close();
    });
    EXPECT_EQ(channel.waitWhilePaused(3), Command::Stop);
    dying.join();
    channel.send(PausedMessage{4});
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(told, 1);
}

TEST(RankChannel, endsAWorkerWhoseSupervisorHasDied)
{
    SupervisorEnd supervisor;
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        supervisor.close();
        const RankChannel channel(supervisor.rankFd, RankChannel::endProcess);
        for (;;) // a rank in a collective that never ends
            ::pause();
    }
    ::close(supervisor.rankFd);
    supervisor.close();
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), RankChannel::kSupervisorGoneExitCode);
}

TEST(RankChannel, sendsAlsoWhereNoDescriptorIsLeftToBeWokenBy)
{
    SupervisorEnd supervisor;
    std::optional<RankChannel> channel;
    {
        const shardscope::test::NoDescriptors none;
        channel.emplace(supervisor.rankFd, nullptr);
    }
    channel->send(PausedMessage{4});
    const auto first = supervisor.next();
    ASSERT_TRUE(first);
    EXPECT_EQ(std::get<PausedMessage>(*first).step, 4);
}
