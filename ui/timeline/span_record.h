// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/names.h"

#include <array>
#include <cstdint>
#include <optional>

namespace shardscope::ui::timeline {

inline constexpr size_t kCategories = std::size(Names<SpanCategory>::texts);
/// In SpanRecord's indices: belongs to none, or not measured.
inline constexpr int32_t kNone = -1;

/// One span as the timeline knows it. Times count from the recording's origin; indices are into the snapshot's tables.
struct SpanRecord
{
    int64_t startNs = 0;
    int64_t durationNs = 0;
    int64_t spanId = 0; ///< of its database
    int64_t bytes = kNone;
    int64_t step = kNone; ///< the step's number
    int32_t name = kNone;
    int32_t unit = kNone;
    int32_t collective = kNone;
    SpanCategory category = SpanCategory::Compute;
    std::optional<Phase> phase; ///< empty: unknown (imported recordings)
    bool open = false;          ///< it had not ended when it was read; its duration then reaches up to that moment

    int64_t endNs() const { return startNs + durationNs; }
    bool operator==(const SpanRecord &) const = default;
};

/// Busy nanoseconds by category.
struct Busy
{
    std::array<int64_t, kCategories> ns{};

    int64_t &operator[](SpanCategory category) { return ns[static_cast<size_t>(category)]; }
    int64_t operator[](SpanCategory category) const { return ns[static_cast<size_t>(category)]; }
    int64_t totalNs() const
    {
        int64_t sum = 0;
        for (const int64_t value : ns)
            sum += value;
        return sum;
    }
    Busy &operator+=(const Busy &other)
    {
        for (size_t i = 0; i < kCategories; ++i)
            ns[i] += other.ns[i];
        return *this;
    }
    Busy &operator-=(const Busy &other)
    {
        for (size_t i = 0; i < kCategories; ++i)
            ns[i] -= other.ns[i];
        return *this;
    }
    bool operator==(const Busy &) const = default;
};

} // namespace shardscope::ui::timeline
