// SPDX-License-Identifier: Apache-2.0
#include "core/base/clock.h"
#include "core/control/control_client.h"
#include "core/run/run_status.h"
#include "tests/support/temporary_folder.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

using namespace shardscope;
using namespace shardscope::control;
using namespace std::chrono_literals;
using shardscope::test::TemporaryFolder;
using testing::HasSubstr;

/// Accepts one client, and answers its first line with what the test says.
class OneAnswer
{
public:
    OneAnswer(const std::filesystem::path &path, std::string answer)
    {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
        m_fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        EXPECT_EQ(::bind(m_fd, reinterpret_cast<sockaddr *>(&address), sizeof address), 0) << path;
        EXPECT_EQ(::listen(m_fd, 1), 0);
        m_thread = std::thread([this, answer = std::move(answer)] {
            const int client = ::accept(m_fd, nullptr, nullptr);
            char bytes[512];
            const ssize_t got = ::read(client, bytes, sizeof bytes);
            EXPECT_GT(got, 0);
            EXPECT_EQ(::send(client, answer.data(), answer.size(), MSG_NOSIGNAL), static_cast<ssize_t>(answer.size()));
            ::close(client);
        });
    }
    ~OneAnswer()
    {
        m_thread.join();
        ::close(m_fd);
    }

private:
    int m_fd = -1;
    std::thread m_thread;
};

TEST(ControlClient, keepsEventsThatComeBeforeTheReply)
{
    const TemporaryFolder temporary;
    const auto path = temporary.path() / "s";
    const OneAnswer server(path, toLine(Event{"step", {{"step", 1}}}) + "\n" +
                                     toLine(Reply{1, true, {}, {{"step", 2}}}) + "\n" + toLine(Event{"state", {}}) +
                                     "\n");
    auto client = ControlClient::connect(path);
    ASSERT_TRUE(client) << client.error().text;
    const auto result = client->request(RequestKind::Pause, 60s);
    ASSERT_TRUE(result) << result.error().text;
    EXPECT_EQ((*result)["step"], 2);
    EXPECT_EQ(client->nextEvent(60s).value()->name, "step");
    EXPECT_EQ(client->nextEvent(60s).value()->name, "state");
    EXPECT_THAT(client->nextEvent(60s).error().text, HasSubstr("ended"));
}

TEST(ControlClient, hasTheSupervisorsReasonWhereItRefuses)
{
    const TemporaryFolder temporary;
    const auto path = temporary.path() / "s";
    const OneAnswer server(path, toLine(Reply{1, false, "The run is stopping.", {}}) + "\n");
    auto client = ControlClient::connect(path);
    ASSERT_TRUE(client);
    EXPECT_EQ(client->request(RequestKind::Pause, 60s).error().text, "The run is stopping.");
}

TEST(ControlClient, saysThatTheSupervisorEndedWithoutAReply)
{
    const TemporaryFolder temporary;
    const auto path = temporary.path() / "s";
    const OneAnswer server(path, "");
    auto client = ControlClient::connect(path);
    ASSERT_TRUE(client);
    EXPECT_THAT(client->request(RequestKind::Pause, 60s).error().text, HasSubstr("ended"));
}

TEST(ControlClient, saysWhyARunCannotBeReached)
{
    const TemporaryFolder temporary;
    const run::RunFolder folder(temporary.path());
    EXPECT_THAT(ControlClient::connect(folder).error().text, HasSubstr("no state.json"));
    run::RunStatus status;
    status.state = RunState::Done;
    ASSERT_TRUE(run::writeStatus(folder, status));
    EXPECT_THAT(ControlClient::connect(folder).error().text, HasSubstr("has ended already (done)"));
    status.state = RunState::Running;
    ASSERT_TRUE(run::writeStatus(folder, status));
    EXPECT_THAT(ControlClient::connect(folder).error().text, HasSubstr("lost"));
    EXPECT_FALSE(ControlClient::connect(temporary.path() / "no socket"));
}
