// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/collect/device_join.h"

#include <cstdint>
#include <functional>
#include <optional>

namespace shardscope::collect {

/// When the device was in which phase of which unit: runs of kernels with the same context, as one bracket each. The
/// host's own spans say when the calls were made, which is up to a step earlier.
class PhaseBrackets
{
public:
    struct Bracket
    {
        SpanContext context;
        int64_t startNs = 0;
        int64_t endNs = 0;
    };
    using Sink = std::function<void(const Bracket &)>;
    explicit PhaseBrackets(Sink sink)
        : m_sink(std::move(sink))
    {
    }

    /// A kernel that computes, in the order of their starts but for small slips.
    void kernel(const SpanContext &context, int64_t startNs, int64_t endNs);
    /// Hands on the open bracket.
    void close();

private:
    Sink m_sink;
    std::optional<Bracket> m_open;
};

} // namespace shardscope::collect
