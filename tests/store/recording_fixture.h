// SPDX-License-Identifier: Apache-2.0
// A small recording with known contents, written through the Writer: for tests of the reader, the views and the
// analysis. Library target: shardscope_test_recording.
//
// Units: embedding, block.0 …, head; U of them. Lanes of a rank: "phases" (brackets), "main thread", "compute",
// "communication", "copies". A step of rank r, in microseconds since its start:
//   0–300 the host prepares the input. Then, with prefetch:
//   forward: all-gather of the first unit 200 (exposed); per unit 400 of compute, the next unit's all-gather beside it
//   backward: all-gather of the last unit 200 (exposed); per unit, last first, 800 of compute, beside it the next
//     unit's all-gather (200) and the reduce-scatter (300) of the unit before; the last reduce-scatter 300 (exposed)
//   all-reduce 100 (exposed), optimizer 500 of compute, copy 50 (exposed); idle until the step ends.
// Without prefetch each all-gather, compute and reduce-scatter follows the one before: all communication is exposed.
// Rank r enters each collective r × 10 late, and all ranks leave it together.
#pragma once

#include "core/base/result.h"
#include "profiler/store/writer.h"
#include "tests/support/temporary_folder.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::test {

struct FixtureOptions
{
    int64_t ranks = 2;
    int64_t attempt = 1;
    int64_t steps = 4;
    int64_t firstStep = 0;
    int64_t blocks = 2; ///< so U is 4
    int64_t originNs = 1'700'000'000'000'000'000;
    int64_t stepNs = 10'000'000; ///< long enough for U = 4, with and without prefetch
    bool cuda = true;            ///< kind of the device and its lanes
    bool prefetch = true;
    std::vector<int64_t> skipRanks;    ///< no database for these
    bool finish = true;                ///< false: no rank has ended
    int64_t droppedRecords = 0;        ///< of rank 0
    std::optional<int64_t> killedRank; ///< by signal 9, as the supervisor tells it; it has no end
    std::optional<int64_t> slowRank;   ///< computes longer in the optimizer …
    int64_t slowUs = 500;              ///< … by this
    store::Retention retention;
    std::string namePrefix; ///< put before the names of spans: odd characters
};

/// A recording that is still being written. One thread.
class LiveFixture
{
public:
    /// Makes attempt-K/rank-N.sqlite and supervisor.sqlite in the run folder, which is made too.
    static Result<LiveFixture> start(const std::filesystem::path &runFolder, const FixtureOptions &options = {});
    LiveFixture(LiveFixture &&) noexcept;
    LiveFixture &operator=(LiveFixture &&) noexcept;
    ~LiveFixture();

    /// Writes and commits the next step of all ranks.
    Result<> writeStep();
    /// Ends the ranks and closes the databases.
    Result<> finish();

private:
    struct Rank;
    LiveFixture();
    std::vector<std::unique_ptr<Rank>> m_ranks;
    std::unique_ptr<store::Writer> m_supervisor;
    FixtureOptions m_options;
    int64_t m_nextStep = 0;
};

/// The whole recording at once.
Result<> writeFixtureRecording(const std::filesystem::path &runFolder, const FixtureOptions &options = {});

/// Bytes of the step peak: 4 MiB parameters, 8 MiB optimizer, 1 MiB gathered (512 KiB without prefetch), 256 KiB of
/// activations a unit, and 64 + 32 + 16 + 8 KiB of communication, temporary, input and other, 4 KiB of rounding.
int64_t fixturePeakBytes(const FixtureOptions &options);

} // namespace shardscope::test
