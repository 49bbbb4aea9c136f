// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/catalog_reader.h"

#include "profiler/store/query.h"

#include <algorithm>
#include <charconv>

namespace shardscope::store {
namespace {

/// The entry of an id: the old one, or a new one at the end of the list.
template <typename Entry>
Entry &entryOf(IndexMap &map, std::vector<Entry> &list, int64_t id)
{
    const auto [found, added] = map.try_emplace(id, static_cast<Index>(list.size()));
    if (added)
        list.emplace_back();
    return list[static_cast<size_t>(found->second)];
}

template <typename T>
std::optional<T> numberOf(const std::string &text)
{
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
        return std::nullopt;
    return value;
}

void readProcesses(SQLite::Database &database, SourceFile &file, Catalog &catalog)
{
    Query query(database, "SELECT process_id, attempt, rank, local_rank, world_size, host, pid, command, started_ns, "
                          "ended_ns, exit_code, signal FROM process ORDER BY process_id");
    while (query.next()) {
        ProcessInfo &process = entryOf(file.processes, catalog.processes, query.integer(0));
        process.file = file.database.path();
        process.attempt = query.integer(1);
        process.rank = query.optionalInteger(2);
        process.localRank = query.optionalInteger(3);
        process.worldSize = query.optionalInteger(4);
        process.host = query.string(5);
        process.pid = query.integer(6);
        process.command = query.string(7);
        process.startedNs = query.integer(8); // epoch until readSmallTables() knows the origin
        process.endedNs = query.optionalInteger(9);
        process.exitCode = query.optionalInteger(10);
        process.signal = query.optionalInteger(11);
    }
}

void readMeta(SQLite::Database &database, SourceFile &file, Catalog &catalog)
{
    Query query(database, "SELECT process_id, key, value FROM meta");
    while (query.next()) {
        const Index process = find(file.processes, query.integer(0));
        if (process == kNone)
            continue;
        ProcessInfo &info = catalog.processes[static_cast<size_t>(process)];
        const std::string key = query.string(1), value = query.string(2);
        info.meta[key] = value;
        if (key == "model_flops_per_token")
            info.modelFlopsPerToken = numberOf<double>(value);
        else if (key == "source" && info.rank)
            catalog.source = value;
        else if (key == "origin_ns" && catalog.originNs == 0)
            catalog.originNs = numberOf<int64_t>(value).value_or(0);
    }
}

/// Without a word of the producer the first process's start is the origin.
void settleOrigin(SourceFile &file, Catalog &catalog)
{
    for (const auto &[id, index] : file.processes) {
        if (catalog.originNs == 0)
            catalog.originNs = catalog.processes[static_cast<size_t>(index)].startedNs;
    }
    for (const auto &[id, index] : file.processes) {
        ProcessInfo &process = catalog.processes[static_cast<size_t>(index)];
        process.startedNs -= catalog.originNs;
        if (process.endedNs)
            *process.endedNs -= catalog.originNs;
    }
}

void readDevices(SQLite::Database &database, SourceFile &file, Catalog &catalog)
{
    Query query(database, "SELECT device_id, process_id, uuid, pci, ordinal, kind, name, memory_bytes, peak_flops "
                          "FROM device ORDER BY device_id");
    while (query.next()) {
        DeviceInfo &device = entryOf(file.devices, catalog.devices, query.integer(0));
        device.process = find(file.processes, query.integer(1));
        device.uuid = query.string(2);
        device.pci = query.string(3);
        device.ordinal = query.integer(4);
        device.kind = query.word(5, DeviceKind::Cuda);
        device.name = query.string(6);
        device.memoryBytes = query.integer(7);
        device.peakFlops = query.optionalReal(8);
    }
}

void readLanes(SQLite::Database &database, SourceFile &file, Catalog &catalog)
{
    Query query(database, "SELECT lane_id, process_id, device_id, kind, native_id, name, sort_order FROM lane ORDER BY "
                          "lane_id");
    while (query.next()) {
        LaneInfo &lane = entryOf(file.lanes, catalog.lanes, query.integer(0));
        lane.laneId = query.integer(0);
        lane.process = find(file.processes, query.integer(1));
        lane.device = find(file.devices, query.optionalInteger(2));
        lane.kind = query.word(3, LaneKind::Thread);
        lane.nativeId = query.integer(4);
        lane.name = query.string(5);
        lane.sortOrder = query.integer(6);
    }
}

void readNames(SQLite::Database &database, SourceFile &file, Catalog &catalog,
               std::unordered_map<std::string, Index> &known)
{
    Query query(database, "SELECT name_id, text FROM name WHERE name_id > ? ORDER BY name_id");
    query.bind(file.lastNameId);
    while (query.next()) {
        file.lastNameId = query.integer(0);
        // Equal texts of several files are one name.
        const auto [found, added] = known.try_emplace(query.string(1), static_cast<Index>(catalog.names.size()));
        if (added)
            catalog.names.push_back(found->first);
        file.names[file.lastNameId] = found->second;
    }
}

void readUnits(SQLite::Database &database, SourceFile &file, Catalog &catalog)
{
    Query query(database, "SELECT unit_id, process_id, parent_unit_id, name, kind, ordinal, parameters, "
                          "parameter_bytes, shard_bytes, padding_bytes FROM unit ORDER BY unit_id");
    while (query.next()) {
        UnitEntry &unit = entryOf(file.units, catalog.units, query.integer(0));
        unit.process = find(file.processes, query.integer(1));
        unit.parent = find(file.units, query.optionalInteger(2));
        unit.name = query.string(3);
        unit.kind = query.word(4, UnitKind::Other);
        unit.ordinal = query.integer(5);
        unit.parameters = query.integer(6);
        unit.parameterBytes = query.integer(7);
        unit.shardBytes = query.integer(8);
        unit.paddingBytes = query.integer(9);
    }
}

void readCommunicators(SQLite::Database &database, SourceFile &file, Catalog &catalog)
{
    Query query(database, "SELECT communicator_id, process_id, uid, backend, size, rank_in, members_json FROM "
                          "communicator ORDER BY communicator_id");
    while (query.next()) {
        CommunicatorEntry &communicator = entryOf(file.communicators, catalog.communicators, query.integer(0));
        communicator.process = find(file.processes, query.integer(1));
        communicator.uid = query.string(2);
        communicator.backend = query.string(3);
        communicator.size = query.integer(4);
        communicator.rankIn = query.integer(5);
        communicator.membersJson = query.string(6);
    }
}

void readConfigs(SQLite::Database &database, SourceFile &file, Catalog &catalog)
{
    Query query(database, "SELECT config_id, process_id, first_step, changed_json, full_json, origin, requested_ns "
                          "FROM config ORDER BY config_id");
    while (query.next()) {
        ConfigInfo &config = entryOf(file.configs, catalog.configs, query.integer(0));
        config.configId = query.integer(0);
        config.process = find(file.processes, query.integer(1));
        config.firstStep = query.integer(2);
        config.changedJson = query.string(3);
        config.fullJson = query.string(4);
        config.origin = query.string(5);
        config.requestedNs = query.integer(6) - catalog.originNs;
    }
}

void readCounters(SQLite::Database &database, SourceFile &file, Catalog &catalog)
{
    Query flushes(database, "SELECT flush_id, process_id, spans, dropped_records FROM flush WHERE flush_id > ? ORDER "
                            "BY flush_id");
    flushes.bind(file.lastFlushId);
    while (flushes.next()) {
        file.lastFlushId = flushes.integer(0);
        const Index process = find(file.processes, flushes.integer(1));
        if (process == kNone)
            continue;
        catalog.processes[static_cast<size_t>(process)].spansWritten += flushes.integer(2);
        catalog.processes[static_cast<size_t>(process)].droppedRecords += flushes.integer(3);
    }
    Query clocks(database, "SELECT process_id, max(uncertainty_ns) FROM clock GROUP BY process_id");
    while (clocks.next()) {
        const Index process = find(file.processes, clocks.integer(0));
        if (process != kNone)
            catalog.processes[static_cast<size_t>(process)].clockUncertaintyNs = clocks.integer(1);
    }
}

} // namespace

Index Catalog::rankProcess(int64_t attempt, int64_t rank) const
{
    for (size_t i = 0; i < processes.size(); ++i) {
        if (processes[i].attempt == attempt && processes[i].rank == rank)
            return static_cast<Index>(i);
    }
    return kNone;
}

const ConfigInfo *Catalog::lastConfig() const
{
    if (attempts.empty() || attempts.back().ranks.empty())
        return nullptr;
    const ConfigInfo *last = nullptr;
    for (const ConfigInfo &one : configs) {
        if (one.process == attempts.back().ranks.front() && (!last || one.configId > last->configId))
            last = &one;
    }
    return last;
}

void readSmallTables(SourceFile &file, std::unordered_map<std::string, Index> &nameIndex, Catalog &catalog)
{
    DatabaseFile::Access access(file.database, nullptr);
    SQLite::Database &database = access.database();
    readProcesses(database, file, catalog);
    readMeta(database, file, catalog);
    settleOrigin(file, catalog);
    readDevices(database, file, catalog);
    readLanes(database, file, catalog);
    readNames(database, file, catalog, nameIndex);
    readUnits(database, file, catalog);
    readCommunicators(database, file, catalog);
    readConfigs(database, file, catalog);
    readCounters(database, file, catalog);
    file.readStepNumbers(database);
}

} // namespace shardscope::store
