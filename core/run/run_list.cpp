// SPDX-License-Identifier: Apache-2.0
#include "core/run/run_list.h"

#include "core/run/run_pointer.h"

#include <algorithm>

namespace fs = std::filesystem;

namespace shardscope::run {

std::string RunSummary::shownName() const
{
    return notes.shownName.empty() ? name : notes.shownName;
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
    for (const ListedRun &run : runsIn(runs)) {
        all.push_back(summarize(run.folder, nowNs));
        all.back().name = run.name;
    }
    std::sort(all.begin(), all.end(), [](const RunSummary &a, const RunSummary &b) {
        if (a.status.startedNs != b.status.startedNs)
            return a.status.startedNs > b.status.startedNs;
        return a.name < b.name;
    });
    return all;
}

} // namespace shardscope::run
