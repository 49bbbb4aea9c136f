// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "profiler/store/recording.h"
#include "real_recordings.h"
#include "tests/support/temporary_folder.h"
#include "ui/timeline/snapshot_builder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace shardscope::ui::timeline {

/// A recording of real GPUs as the timeline shows it, and each rank's database beside it: of two ranks the other one's
/// is attached as `other`.
struct LoadedRecording
{
    std::unique_ptr<test::TemporaryFolder> folder;
    std::shared_ptr<const Snapshot> snapshot;
    std::vector<std::unique_ptr<test::PlainSql>> sql;
};

/// Without a snapshot, and with a failure of the test, where it can't be read.
inline LoadedRecording load(const std::string &name)
{
    LoadedRecording loaded{.folder = std::make_unique<test::TemporaryFolder>()};
    const std::filesystem::path run = loaded.folder->path() / "run";
    test::copyRecording(name, run);
    auto recording = store::Recording::open(run);
    if (!recording) {
        ADD_FAILURE() << recording.error().text;
        return loaded;
    }
    const auto snapshot = readSnapshot(*recording, nullptr, {});
    if (!snapshot) {
        ADD_FAILURE() << snapshot.error().text;
        return loaded;
    }
    loaded.snapshot = *snapshot;
    const size_t ranks = loaded.snapshot->ranks.size();
    for (size_t rank = 0; rank < ranks; ++rank) {
        if (ranks == 2)
            loaded.sql.push_back(std::make_unique<test::PlainSql>(run, static_cast<int>(rank)));
        else
            loaded.sql.push_back(
                std::make_unique<test::PlainSql>(run / "attempt-1" / fmt::format("rank-{}.sqlite", rank)));
    }
    return loaded;
}

} // namespace shardscope::ui::timeline
