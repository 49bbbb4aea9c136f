// SPDX-License-Identifier: Apache-2.0
#include "core/data/data_progress.h"

#include "core/base/clock.h"
#include "core/base/text.h"

#include <cmath>

namespace shardscope::data {

static constexpr int64_t kTellEveryNs = 100'000'000;

static const char *nameOf(DataPhase phase)
{
    switch (phase) {
    case DataPhase::Reading:
        return "Reading the texts";
    case DataPhase::Waiting:
        return "Another process makes the same tokens; waiting for it";
    case DataPhase::Tokenising:
        return "Tokenising";
    case DataPhase::Checking:
        break;
    }
    return "Checking the tokens";
}

std::string toText(const DataProgress &progress)
{
    if (progress.phase == DataPhase::Waiting)
        return fmt::format("{}: {}", nameOf(progress.phase), formatDuration(progress.elapsedNs));
    const double share = progress.totalBytes > 0
                             ? static_cast<double>(progress.doneBytes) / static_cast<double>(progress.totalBytes)
                             : 1.0;
    std::string text = fmt::format("{}: {:.0f} %, {} of {}", nameOf(progress.phase), std::floor(100 * share),
                                   formatBytes(progress.doneBytes), formatBytes(progress.totalBytes));
    if (progress.elapsedNs <= 0 || progress.doneBytes <= 0)
        return text;
    const double bytesPerSecond =
        1e9 * static_cast<double>(progress.doneBytes) / static_cast<double>(progress.elapsedNs);
    const auto leftBytes = static_cast<double>(progress.totalBytes - progress.doneBytes);
    return text + fmt::format(", {}/s, {:.0f} s left", formatBytes(std::llround(bytesPerSecond)),
                              std::ceil(leftBytes / bytesPerSecond));
}

ProgressMeter::ProgressMeter(const ProgressFunction &function, DataPhase phase, int64_t totalBytes)
    : m_function(function)
    , m_startNs(monotonicNs())
    , m_toldNs(m_startNs - kTellEveryNs) // every phase is told once at least
{
    m_progress.phase = phase;
    m_progress.totalBytes = totalBytes;
}

Result<> ProgressMeter::add(int64_t bytes)
{
    m_progress.doneBytes += bytes;
    if (!m_function)
        return {};
    const int64_t now = monotonicNs();
    if (now - m_toldNs < kTellEveryNs)
        return {};
    m_toldNs = now;
    m_progress.elapsedNs = now - m_startNs;
    if (!m_function(m_progress))
        return fail("{}", kCancelled);
    return {};
}

} // namespace shardscope::data
