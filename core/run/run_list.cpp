// SPDX-License-Identifier: Apache-2.0
#include "core/run/run_list.h"

#include <algorithm>

namespace fs = std::filesystem;

namespace shardscope::run {

std::string RunSummary::shownName() const
{
    return notes.shownName.empty() ? folder.name() : notes.shownName;
}

RunSummary summarize(const RunFolder &folder, int64_t nowNs)
{
    RunSummary summary{folder, {}, {}, {}};
    if (auto notes = readUserNotes(folder))
        summary.notes = *notes;
    if (auto status = currentStatus(folder, nowNs)) {
        summary.status = *status;
    } else {
        summary.status.state = RunState::Lost;
        summary.problem = status.error().text;
    }
    return summary;
}

std::vector<RunSummary> listRuns(const fs::path &runs, int64_t nowNs)
{
    std::vector<RunSummary> all;
    std::error_code error;
    for (fs::directory_iterator entry(runs, error), end; !error && entry != end; entry.increment(error)) {
        const RunFolder folder(entry->path());
        if (folder.looksLikeRun())
            all.push_back(summarize(folder, nowNs));
    }
    std::sort(all.begin(), all.end(), [](const RunSummary &a, const RunSummary &b) {
        if (a.status.startedNs != b.status.startedNs)
            return a.status.startedNs > b.status.startedNs;
        return a.folder.name() < b.folder.name();
    });
    return all;
}

} // namespace shardscope::run
