// SPDX-License-Identifier: Apache-2.0
// How far the preparation of a run's tokens is. Large texts take minutes: whoever waits is told, and can give up.
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <functional>
#include <string>

namespace shardscope::data {

enum class DataPhase {
    Reading,    ///< texts are read through once, to know them again
    Waiting,    ///< another process makes the same tokens
    Tokenising, ///< texts become tokens
    Checking    ///< every token is looked at
};

struct DataProgress
{
    DataPhase phase = DataPhase::Reading;
    int64_t doneBytes = 0;
    int64_t totalBytes = 0;
    int64_t elapsedNs = 0; ///< since the phase began
};

/// "Tokenising: 45 %, 12.3 MiB of 27.1 MiB, 8.1 MiB/s, 2 s left"
std::string toText(const DataProgress &progress);

/// Called in the thread that prepares, about ten times a second. False: give up (open() then fails with kCancelled).
using ProgressFunction = std::function<bool(const DataProgress &)>;

inline constexpr const char *kCancelled = "Cancelled while the data were prepared. Nothing of it is left.";

/// One phase's calls of a ProgressFunction, as seldom as they should be.
class ProgressMeter
{
public:
    /// function may be empty; it must outlive the meter.
    ProgressMeter(const ProgressFunction &function, DataPhase phase, int64_t totalBytes);
    /// Fails with kCancelled where the function says so. Cheap: can be called for every block.
    Result<> add(int64_t bytes);

private:
    const ProgressFunction &m_function;
    DataProgress m_progress;
    int64_t m_startNs;
    int64_t m_toldNs;
};

} // namespace shardscope::data
