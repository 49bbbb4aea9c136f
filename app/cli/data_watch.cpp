// SPDX-License-Identifier: Apache-2.0
#include "app/cli/data_watch.h"

#include "core/base/clock.h"

namespace shardscope::cli {

static constexpr int64_t kQuietNs = 300'000'000; ///< what takes less is not worth a line
static constexpr int64_t kLineEveryNs = 5'000'000'000;

DataWatch::DataWatch(Output &errors)
    : m_errors(errors)
    , m_lastLineNs(monotonicNs())
{
}

DataWatch::~DataWatch()
{
    if (m_shown)
        m_errors.progress("");
}

data::ProgressFunction DataWatch::function()
{
    return [this](const data::DataProgress &progress) {
        show(progress);
        return !m_signals.asked();
    };
}

void DataWatch::show(const data::DataProgress &progress)
{
    if (progress.elapsedNs < kQuietNs)
        return;
    if (m_errors.isTerminal()) {
        m_errors.progress(data::toText(progress));
        m_shown = true;
        return;
    }
    const int64_t now = monotonicNs();
    if (now - m_lastLineNs < kLineEveryNs)
        return;
    m_lastLineNs = now;
    m_errors.line(data::toText(progress));
}

} // namespace shardscope::cli
