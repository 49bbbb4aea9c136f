// SPDX-License-Identifier: Apache-2.0
#include "core/launch/signal_watcher.h"

#include "tests/support/no_descriptors.h"

#include <QSignalSpy>
#include <csignal>
#include <gtest/gtest.h>
#include <optional>
#include <set>

using shardscope::launch::SignalWatcher;

/// Leaves the signals of this process as they were.
class SignalWatcherTest : public testing::Test
{
protected:
    SignalWatcherTest() { ::pthread_sigmask(SIG_SETMASK, nullptr, &m_before); }
    ~SignalWatcherTest() override { ::pthread_sigmask(SIG_SETMASK, &m_before, nullptr); }
    static bool isBlocked(int signal)
    {
        sigset_t now;
        ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
        return sigismember(&now, signal) == 1;
    }

private:
    sigset_t m_before{};
};

TEST_F(SignalWatcherTest, tellsWhatCameWhileSignalsWereHeld)
{
    SignalWatcher::hold();
    ::raise(SIGTERM);
    ::raise(SIGINT);
    ::raise(SIGHUP); // a terminal that is closed ends no run
    SignalWatcher watcher;
    QSignalSpy received(&watcher, &SignalWatcher::received);
    while (received.count() < 2)
        ASSERT_TRUE(received.wait(20'000));
    const std::set<int> told{received[0][0].toInt(), received[1][0].toInt()};
    EXPECT_EQ(told, (std::set{SIGINT, SIGTERM}));
}

TEST_F(SignalWatcherTest, blocksNothingThatItCannotRead)
{
    std::optional<SignalWatcher> watcher;
    {
        const shardscope::test::NoDescriptors none;
        watcher.emplace();
    }
    EXPECT_FALSE(isBlocked(SIGINT));
    EXPECT_FALSE(isBlocked(SIGTERM));
}
