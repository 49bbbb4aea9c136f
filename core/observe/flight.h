// SPDX-License-Identifier: Apache-2.0
// attempt-K/rank-N.flight: the last 1,024 collectives of a rank, in a file that it maps and that survives its death
// by any signal. Who died or hangs, and in which collective, is read here: enqueued but not ended.
//
// Layout, little endian, natural alignment, no pointers: one FlightHeader, then kFlightEntries FlightEntry. The slot of
// collective n (counted from 0 on each rank) is n % kFlightEntries. A writer sets `number` to -1, fills the slot, then
// stores `number` with release order; a reader skips slots whose number is -1 or changes under its hands.
#pragma once

#include "core/base/names.h"
#include "core/base/result.h"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::observe {

inline constexpr char kFlightMagic[8] = {'S', 'S', 'F', 'L', 'I', 'G', 'H', 'T'};
inline constexpr uint32_t kFlightVersion = 1;
inline constexpr uint32_t kFlightEntries = 1024;

struct FlightHeader
{
    char magic[8];
    uint32_t version;
    uint32_t entries;
    uint32_t entryBytes;
    int32_t rank;
    int32_t worldSize;
    int32_t pid;
    std::atomic<int64_t> step; ///< the step that is running or ran last; -1 before the first
    uint32_t endsKnown;        ///< 0: nobody tells when collectives end (CUDA without CUPTI's records)
    char reserved[20];
};
static_assert(sizeof(FlightHeader) == 64);

struct FlightEntry
{
    std::atomic<int64_t> number; ///< counts this rank's collectives from 0; -1: empty or being written
    int64_t sequence;            ///< on its communicator; equal on all ranks
    int64_t step;
    int64_t inputBytes;
    int64_t outputBytes;
    std::atomic<int64_t> enqueuedNs; ///< CLOCK_REALTIME; 0: not yet
    std::atomic<int64_t> startedNs;
    std::atomic<int64_t> endedNs;
    int32_t operation; ///< Operation
    int32_t phase;     ///< Phase
    char unit[32];     ///< NUL-terminated, cut where longer; empty: none
    char communicator[24];
};
static_assert(sizeof(FlightEntry) == 128);

/// One collective as it was when the file was read.
struct FlightRecord
{
    int64_t number = 0;
    int64_t sequence = 0;
    int64_t step = 0;
    Operation operation = Operation::AllGather;
    Phase phase = Phase::Forward;
    std::string unit;
    std::string communicator;
    int64_t inputBytes = 0;
    int64_t outputBytes = 0;
    std::optional<int64_t> enqueuedNs;
    std::optional<int64_t> startedNs;
    std::optional<int64_t> endedNs;
};

struct Flight
{
    int32_t rank = 0;
    int32_t worldSize = 0;
    int32_t pid = 0;
    int64_t step = -1;
    bool endsKnown = true;
    std::vector<FlightRecord> records; ///< oldest first
    /// The collective that this rank is in: the first that began and did not end, if there is one. Where ends are not
    /// known, the last one.
    const FlightRecord *pending() const;
};

/// Reads a flight file, of a live process too. Refuses files of another layout.
Result<Flight> readFlight(const std::filesystem::path &path);

/// "all_gather 812 of block.3 (backward, step 41), enqueued 14:03:22, not ended": for a failure's text.
std::string describe(const FlightRecord &record);

} // namespace shardscope::observe
