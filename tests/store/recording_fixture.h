// SPDX-License-Identifier: Apache-2.0
// A small recording with known contents, written through the Writer: for tests of readers, views and analysis. Library
// target: shardscope_test_recording.
//
// Each rank has a phase lane and two streams ("compute", "communication"; kind cpu: threads). A step is 10 ms: for
// every unit an all-gather, then forward compute; backward in reverse with gather, compute, reduce-scatter; then the
// optimizer. Rank r enters each collective r × 10 µs late and all leave it together. All numbers follow from the
// options; the tests derive them in comments.
#pragma once

#include "core/base/result.h"
#include "profiler/store/writer.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace shardscope::test {

struct FixtureOptions
{
    int64_t ranks = 2;
    int64_t attempt = 1;
    int64_t steps = 4;
    int64_t firstStep = 0;
    int64_t blocks = 2; ///< units: embedding, block.0 …, head
    int64_t originNs = 1'700'000'000'000'000'000;
    int64_t stepNs = 10'000'000;
    bool cuda = true;               ///< kind of the device and its lanes
    bool prefetch = true;           ///< false: no collective overlaps with compute
    std::vector<int64_t> skipRanks; ///< no database for these
    bool finish = true;             ///< false: ranks still run (no ended_ns), the databases stay in WAL mode
    int64_t droppedRecords = 0;     ///< of rank 0, in the last flush
    store::Retention retention;
    std::string namePrefix; ///< put before span names: odd characters
};

/// Writes attempt-K/rank-N.sqlite (and supervisor.sqlite) into the run folder, which is made.
Result<> writeFixtureRecording(const std::filesystem::path &runFolder, const FixtureOptions &options = {});

/// A fresh temporary folder for the current test, deleted by the destructor.
class TemporaryFolder
{
public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder &) = delete;
    TemporaryFolder &operator=(const TemporaryFolder &) = delete;
    const std::filesystem::path &path() const { return m_path; }

private:
    std::filesystem::path m_path;
};

} // namespace shardscope::test
