// SPDX-License-Identifier: Apache-2.0
#include "app/cli/output.h"

#include <chrono>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>
#include <utility>

using shardscope::cli::Output;
using namespace std::chrono_literals;

class OutputToAPipe : public testing::Test
{
protected:
    OutputToAPipe() { EXPECT_EQ(::pipe(m_ends), 0); }
    ~OutputToAPipe() override
    {
        closeWriter();
        ::close(m_ends[0]);
    }
    int reader() const { return m_ends[0]; }
    int writer() const { return m_ends[1]; }
    void closeWriter()
    {
        if (m_ends[1] >= 0)
            ::close(std::exchange(m_ends[1], -1));
    }
    /// All until the writer is closed.
    std::string readAll() const
    {
        std::string all;
        char bytes[65536];
        for (ssize_t got; (got = ::read(m_ends[0], bytes, sizeof bytes)) > 0;)
            all.append(bytes, static_cast<size_t>(got));
        return all;
    }

private:
    int m_ends[2] = {-1, -1};
};

TEST_F(OutputToAPipe, aResultWaitsForAReaderThatTakesItsTime)
{
    const std::string text(300'000, 'r');
    std::string read;
    std::thread reader([&] {
        std::this_thread::sleep_for(1500ms);
        read = readAll();
    });
    Output(writer()).result(text);
    closeWriter();
    reader.join();
    EXPECT_EQ(read, text + "\n");
}

TEST_F(OutputToAPipe, afterALineThatWasCutTheNextIsOneOfItsOwn)
{
    Output output(writer());
    output.line(std::string(200'000, 'x')); // more than a pipe holds
    std::string read(200'000, ' ');
    const ssize_t got = ::read(reader(), read.data(), read.size());
    ASSERT_GT(got, 0);
    output.line("next");
    output.line("after it");
    closeWriter();
    EXPECT_EQ(readAll(), "\nnext\nafter it\n");
}

TEST_F(OutputToAPipe, eventsThatNobodyReadsAreWaitedForOnce)
{
    Output output(writer());
    const auto begin = std::chrono::steady_clock::now();
    for (int event = 0; event < 300; ++event)
        output.event(std::string(100'000, 'x'));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s) << "one second, and not one for each";
    std::string read(200'000, ' ');
    ASSERT_GT(::read(reader(), read.data(), read.size()), 0);
    output.event("next");
    closeWriter();
    EXPECT_EQ(readAll(), "\nnext\n");
}
