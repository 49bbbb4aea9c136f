// SPDX-License-Identifier: Apache-2.0
// What a device says it did. CUPTI stands behind this in a run, hand-made records stand behind it in tests.
#pragma once

#include "core/base/names.h"
#include "core/base/result.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::collect {

enum class ActivityKind {
    Kernel,
    Memcpy,
    Memset,
    Call,       ///< a runtime or driver call, on a thread
    Correlation ///< which context was pushed when a call was made
};

/// What was pushed round a call: a span (step, unit, phase) or a collective.
enum class ContextKind { Span, Collective };

/// One record, all times in nanoseconds of CLOCK_REALTIME.
struct ActivityRecord
{
    ActivityKind kind = ActivityKind::Kernel;
    int64_t startNs = 0;
    int64_t endNs = 0;
    uint32_t correlation = 0; ///< equal for a call and for the work that it put on the device
    uint32_t contextId = 0;
    uint32_t streamId = 0;
    std::string_view name; ///< of a kernel, shortened; of a call; "memcpy HtoD". Lives as long as the source
    int64_t bytes = 0;     ///< copied or set
    // of a call
    uint32_t threadId = 0;
    bool launches = false; ///< it succeeded and is one of those that put work on the device
    // of a kernel
    std::array<int32_t, 3> grid{};
    std::array<int32_t, 3> block{};
    int32_t registers = 0;
    int64_t sharedBytes = 0;
    uint32_t graphId = 0;
    // of a correlation
    ContextKind context = ContextKind::Span;
    uint64_t contextValue = 0;
};

/// What has come in since the batch before, in no order.
struct ActivityBatch
{
    std::vector<ActivityRecord> records;
    int64_t dropped = 0; ///< records lost since the last batch
    /// Things a user should know; each becomes a warning.
    std::vector<std::string> warnings;
};

class ActivitySource
{
public:
    virtual ~ActivitySource() = default;

    /// Begins to record. Called before the device's context exists. `full` adds CUDA's calls but for
    /// those of muted_calls.h.
    virtual Result<> start(RecordLevel level) = 0;
    /// Records at another level from now on; off: nothing. From the train thread, between two steps. An error: nothing
    /// is recorded.
    virtual Result<> setLevel(RecordLevel level) = 0;
    /// From the train thread, at each span and collective: cheap.
    virtual void push(ContextKind kind, uint64_t value) = 0;
    virtual void pop(ContextKind kind) = 0;
    /// The streamId of records of this stream (a cudaStream_t); nothing where the source can't tell. From the train
    /// thread, at each collective: cheap.
    virtual std::optional<uint32_t> streamId(const void *stream) = 0;
    /// What has come in since the last call; never waits for the device. From the recorder's thread.
    virtual ActivityBatch take() = 0;
    /// Ends recording and gives back all that is left. Work that the device has not done by now counts as dropped.
    virtual ActivityBatch stop() = 0;
};

/// CUPTI of this process, found at run time: already loaded, in LD_LIBRARY_PATH, or by its name. An error says what is
/// missing; a run goes on without device records then.
Result<std::unique_ptr<ActivitySource>> makeCuptiSource();

} // namespace shardscope::collect
