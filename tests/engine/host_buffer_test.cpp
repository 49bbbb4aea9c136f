// SPDX-License-Identifier: Apache-2.0
#include "core/engine/host_buffer.h"

#include <cstring>
#include <gmock/gmock.h>
#include <utility>

namespace shardscope::engine {

TEST(HostBuffer, isWholePagesThatCanBeWritten)
{
    auto buffer = HostBuffer::allocate(5000, false, "a test");
    ASSERT_TRUE(buffer) << buffer.error().text;
    EXPECT_GE(buffer->bytes(), 5000);
    EXPECT_EQ(buffer->bytes(), HostBuffer::wholePages(5000));
    EXPECT_EQ(HostBuffer::wholePages(buffer->bytes()), buffer->bytes());
    std::memset(buffer->data(), 7, static_cast<size_t>(buffer->bytes()));
    HostBuffer moved = std::move(*buffer);
    EXPECT_EQ(moved.data()[4999], std::byte{7});
    EXPECT_EQ(buffer->data(), nullptr);
}

TEST(HostBuffer, saysWhatThereIsNoMemoryFor)
{
    const auto buffer = HostBuffer::allocate(int64_t{1} << 60, false, "a test");
    ASSERT_FALSE(buffer);
    EXPECT_THAT(buffer.error().text, testing::StartsWith("There is no host memory for "));
    EXPECT_THAT(buffer.error().text, testing::HasSubstr(" of a test: "));
}

} // namespace shardscope::engine
