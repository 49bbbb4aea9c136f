// SPDX-License-Identifier: Apache-2.0
#include "app/worker/failure_text.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <new>
#include <string_view>

namespace shardscope::worker {

static std::string textOf(const std::exception &error)
{
    if (const auto *known = dynamic_cast<const c10::Error *>(&error))
        return known->what_without_backtrace();
    return error.what();
}

static bool contains(std::string_view text, std::string_view part)
{
    return text.find(part) != std::string_view::npos;
}

bool isOutOfMemory(const std::exception &error)
{
    const std::string text = textOf(error);
    return dynamic_cast<const c10::OutOfMemoryError *>(&error) || dynamic_cast<const std::bad_alloc *>(&error) ||
           contains(text, "DefaultCPUAllocator: can't allocate memory") || contains(text, "out of memory") ||
           contains(text, "CUBLAS_STATUS_ALLOC_FAILED") || contains(text, "CUDNN_STATUS_ALLOC_FAILED");
}

bool isPeerLost(const std::exception &error)
{
    const std::string text = textOf(error);
    return contains(text, "Connection closed by peer") || contains(text, "Connection reset by peer") ||
           contains(text, "Broken pipe") || contains(text, "remote process exited");
}

std::string explainException(const std::exception &error, int rank)
{
    const std::string text = textOf(error);
    if (isOutOfMemory(error))
        return fmt::format("Rank {} ran out of memory: {}\nMake the step smaller: halve train.micro_batch and double "
                           "train.accumulation (the same global batch), shorten train.sequence_length, use "
                           "parallel.strategy=full, more ranks or precision.compute=bf16.",
                           rank, text);
    if (isPeerLost(error))
        return fmt::format("Rank {} lost its connection to another rank, which has ended: {}", rank, text);
    return fmt::format("Rank {}: {}", rank, text);
}

} // namespace shardscope::worker
