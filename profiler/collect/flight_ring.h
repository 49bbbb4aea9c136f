// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "core/observe/flight.h"
#include "core/observe/observer.h"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::collect {

/// The writing end of a flight file (core/observe/flight.h): a shared mapping, so that what was stored survives any
/// death of the process; only a death of the machine loses it. begin() belongs to one thread, the rest to any.
class FlightRing
{
public:
    static Result<std::unique_ptr<FlightRing>> create(const std::filesystem::path &path, int32_t rank,
                                                      int32_t worldSize, bool endsKnown);
    ~FlightRing();
    FlightRing(const FlightRing &) = delete;
    FlightRing &operator=(const FlightRing &) = delete;

    void step(int64_t number);
    void begin(int64_t number, const observe::CollectiveInfo &info, int64_t step, std::string_view unit,
               std::string_view communicator);
    /// Each does nothing where the ring no longer holds the collective.
    void enqueued(int64_t number, int64_t timeNs);
    void started(int64_t number, int64_t timeNs);
    void ended(int64_t number, int64_t timeNs);

private:
    explicit FlightRing(void *mapping);
    observe::FlightEntry *find(int64_t number);

    observe::FlightHeader *m_header;
    observe::FlightEntry *m_entries;
};

} // namespace shardscope::collect
