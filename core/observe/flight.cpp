// SPDX-License-Identifier: Apache-2.0
#include "core/observe/flight.h"

#include "core/base/file.h"

#include <algorithm>
#include <cstring>
#include <ctime>

namespace shardscope::observe {

namespace {

std::string boundedText(const char *text, size_t size)
{
    return std::string(text, strnlen(text, size));
}

std::optional<int64_t> timeOrNothing(int64_t timeNs)
{
    return timeNs == 0 ? std::nullopt : std::optional(timeNs);
}

/// An enumeration's value from a file: one that this version does not know is the last of its kind, never out of range.
template <typename E>
E enumerator(int32_t value)
{
    const auto last = static_cast<int32_t>(std::size(Names<E>::texts)) - 1;
    return static_cast<E>(std::clamp(value, 0, last));
}

FlightRecord toRecord(const FlightEntry &entry, int64_t number)
{
    FlightRecord record;
    record.number = number;
    record.sequence = entry.sequence;
    record.step = entry.step;
    record.operation = enumerator<Operation>(entry.operation);
    record.phase = enumerator<Phase>(entry.phase);
    record.unit = boundedText(entry.unit, sizeof entry.unit);
    record.communicator = boundedText(entry.communicator, sizeof entry.communicator);
    record.inputBytes = entry.inputBytes;
    record.outputBytes = entry.outputBytes;
    record.enqueuedNs = timeOrNothing(entry.enqueuedNs.load(std::memory_order_relaxed));
    record.startedNs = timeOrNothing(entry.startedNs.load(std::memory_order_relaxed));
    record.endedNs = timeOrNothing(entry.endedNs.load(std::memory_order_relaxed));
    return record;
}

std::string clockText(int64_t timeNs)
{
    const time_t seconds = timeNs / 1'000'000'000;
    tm local{};
    localtime_r(&seconds, &local);
    return fmt::format("{:02}:{:02}:{:02}.{:03}", local.tm_hour, local.tm_min, local.tm_sec, timeNs / 1'000'000 % 1000);
}

} // namespace

const FlightRecord *Flight::pending() const
{
    if (!endsKnown)
        return records.empty() ? nullptr : &records.back();
    const auto found = std::ranges::find_if(records, [](const FlightRecord &record) { return !record.endedNs; });
    return found == records.end() ? nullptr : &*found;
}

Result<Flight> readFlight(const std::filesystem::path &path)
{
    // A copy of the bytes: the file may be mapped by a living process, and may be cut short by a full disk.
    auto text = readTextFile(path);
    if (!text)
        return tl::unexpected(text.error());
    const size_t whole = sizeof(FlightHeader) + kFlightEntries * sizeof(FlightEntry);
    if (text->size() < whole || std::memcmp(text->data(), kFlightMagic, sizeof kFlightMagic) != 0)
        return fail("{} is no flight recording, or is cut short ({} bytes of {}).", path.string(), text->size(), whole);

    // std::string's buffer is not aligned for atomics by any promise; vectors of the types are.
    FlightHeader header{};
    std::memcpy(static_cast<void *>(&header), text->data(), sizeof header);
    if (header.version != kFlightVersion || header.entries != kFlightEntries ||
        header.entryBytes != sizeof(FlightEntry))
        return fail("{} is a flight recording of version {}; this program reads version {}.", path.string(),
                    header.version, kFlightVersion);
    std::vector<FlightEntry> entries(kFlightEntries);
    std::memcpy(static_cast<void *>(entries.data()), text->data() + sizeof header,
                kFlightEntries * sizeof(FlightEntry));

    Flight flight{header.rank, header.worldSize, header.pid, header.step.load(), header.endsKnown != 0, {}};
    for (const FlightEntry &entry : entries) {
        if (const int64_t number = entry.number.load(std::memory_order_acquire); number >= 0)
            flight.records.push_back(toRecord(entry, number));
    }
    std::ranges::sort(flight.records, {}, &FlightRecord::number);
    return flight;
}

std::string describe(const FlightRecord &record)
{
    std::string text = fmt::format("{} {}", toText(record.operation), record.sequence);
    if (!record.unit.empty())
        text += " of " + record.unit;
    text += record.step >= 0 ? fmt::format(" ({}, step {})", toText(record.phase), record.step)
                             : fmt::format(" ({})", toText(record.phase));
    if (record.endedNs)
        return text + ", ended " + clockText(*record.endedNs);
    if (record.startedNs)
        return text + ", started " + clockText(*record.startedNs) + ", not ended";
    if (record.enqueuedNs)
        return text + ", enqueued " + clockText(*record.enqueuedNs);
    return text + ", being enqueued";
}

} // namespace shardscope::observe
