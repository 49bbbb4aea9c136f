// SPDX-License-Identifier: Apache-2.0
// Wrong usage and input: a message that names the thing and the remedy, exit code 2, nothing made.
#include "tests/worker/worker_fixture.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace shardscope::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

namespace {

class WorkerInput : public WorkerFixture
{
protected:
    std::string refusal(const std::vector<std::string> &command, const std::map<std::string, std::string> &environment)
    {
        Program program(command, environment, log());
        EXPECT_EQ(program.wait(), 2) << program.output();
        EXPECT_FALSE(std::filesystem::exists(m_run)) << "something was made";
        return program.output();
    }
};

TEST_F(WorkerInput, Usage)
{
    EXPECT_THAT(refusal({workerProgram()}, environment()), HasSubstr("--help"));
    Program help({workerProgram(), "--help"}, environment(), log());
    EXPECT_EQ(help.wait(), 0);
    EXPECT_THAT(help.output(), AllOf(HasSubstr("torchrun"), HasSubstr("--out")));
}

TEST_F(WorkerInput, KeysAndValues)
{
    EXPECT_THAT(refusal(command({"--set", "train.step=3"}), environment()), HasSubstr("train.steps"));
    EXPECT_THAT(refusal(command({"--set", "train.sequence_length=4096"}), environment()), HasSubstr("2048"));
    EXPECT_THAT(refusal(command({"--set", "data.path=/no/such/file"}), environment()), HasSubstr("/no/such/file"));
    EXPECT_THAT(refusal(command({"--resume"}), environment()), HasSubstr("There is no run in"));
}

TEST_F(WorkerInput, Environment)
{
    auto broken = environment(0, 2, 1234);
    broken["RANK"] = "first";
    EXPECT_THAT(refusal(command(), broken), HasSubstr("RANK=first"));
    broken = environment(5, 2, 1234);
    EXPECT_THAT(refusal(command(), broken), HasSubstr("RANK=5 and WORLD_SIZE=2"));
    broken = environment(0, 2, 1234);
    broken["MASTER_PORT"] = "";
    EXPECT_THAT(refusal(command(), broken), HasSubstr("no MASTER_PORT"));
}

TEST_F(WorkerInput, APortInUse)
{
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr *>(&address), length), 0);
    ASSERT_EQ(::listen(fd, 1), 0);
    ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr *>(&address), &length), 0);
    const int port = ntohs(address.sin_port);
    for (const int ranks : {1, 2}) {
        const std::string output = refusal(command(), environment(0, ranks, port));
        EXPECT_THAT(output, AllOf(HasSubstr(fmt::format("MASTER_PORT={} is in use", port)),
                                  HasSubstr("Set MASTER_PORT to a free port")));
    }
    ::close(fd);
}

TEST_F(WorkerInput, AFolderThatExists)
{
    std::filesystem::create_directory(m_run);
    std::ofstream(m_run / "thesis.txt") << "precious";
    Program program(command(), environment(), log());
    EXPECT_EQ(program.wait(), 2);
    EXPECT_THAT(program.output(), HasSubstr("the run"));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(m_run), {}), 1) << "something was made";
}

} // namespace
