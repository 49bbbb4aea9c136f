// SPDX-License-Identifier: Apache-2.0
#include "app/worker/failure_text.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <new>

using namespace shardscope::worker;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

TEST(FailureText, OutOfMemorySaysWhatWasAskedAndWhatToChange)
{
    const c10::OutOfMemoryError error({__func__, __FILE__, 1},
                                      "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 100.00 MiB free.");
    EXPECT_TRUE(isOutOfMemory(error));
    EXPECT_THAT(explainException(error, 3), AllOf(HasSubstr("Rank 3 ran out of memory"), HasSubstr("2.00 GiB"),
                                                  HasSubstr("halve train.micro_batch and double train.accumulation")));
    EXPECT_TRUE(isOutOfMemory(std::bad_alloc()));
    EXPECT_TRUE(isOutOfMemory(std::runtime_error("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate")));
    EXPECT_TRUE(isOutOfMemory(std::runtime_error("cuDNN error: CUDNN_STATUS_ALLOC_FAILED")));
}

TEST(FailureText, ALostPeerIsCalledThat)
{
    const std::runtime_error error("[../gloo/transport/tcp/pair.cc] Connection closed by peer [127.0.0.1]:1234");
    EXPECT_FALSE(isOutOfMemory(error));
    EXPECT_THAT(explainException(error, 0), HasSubstr("lost its connection to another rank"));
}

TEST(FailureText, OtherErrorsComeWithoutABacktrace)
{
    const c10::Error error({__func__, __FILE__, 1}, "shapes differ");
    EXPECT_THAT(explainException(error, 1), AllOf(HasSubstr("Rank 1: shapes differ"), Not(HasSubstr("frame #"))));
}

} // namespace
