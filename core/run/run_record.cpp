// SPDX-License-Identifier: Apache-2.0
#include "core/run/run_record.h"

#include "core/base/file.h"
#include "core/run/json_access.h"
#include "core/run/process_identity.h"

#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <thread>

using nlohmann::json;

namespace shardscope::run {

/// The value of the first line of /proc/cpuinfo with this key.
static std::string processorName()
{
    const auto text = readTextFile("/proc/cpuinfo");
    if (!text)
        return {};
    const size_t key = text->find("model name");
    const size_t colon = key == std::string::npos ? key : text->find(": ", key);
    if (colon == std::string::npos)
        return {};
    return text->substr(colon + 2, text->find('\n', colon) - colon - 2);
}

json describeMachine()
{
    utsname system{};
    ::uname(&system);
    struct sysinfo memory
    {
    };
    ::sysinfo(&memory);
    return {{"host", system.nodename},
            {"system", fmt::format("{} {}", system.sysname, system.release)},
            {"architecture", system.machine},
            {"processor", processorName()},
            {"cores", std::thread::hardware_concurrency()},
            {"memory_bytes", static_cast<int64_t>(memory.totalram) * memory.mem_unit},
            {"boot_id", bootId()}};
}

Result<> writeRunRecord(const RunFolder &folder, const RunRecord &record)
{
    std::error_code error;
    if (std::filesystem::exists(folder.runFile(), error))
        return fail("{} exists already, and is never rewritten.", folder.runFile().string());
    const json all = {{"schema_version", 1},         {"name", folder.name()},       {"origin_ns", record.originNs},
                      {"command", record.command},   {"asked", record.asked},       {"resolved", record.resolved},
                      {"versions", record.versions}, {"machine", describeMachine()}};
    return writeFileAtomically(folder.runFile(), dump(all, 2) + "\n");
}

Result<RunRecord> readRunRecord(const RunFolder &folder)
{
    const auto text = readTextFile(folder.runFile());
    if (!text)
        return tl::unexpected(text.error());
    const auto object = parseObject(*text, folder.runFile().string());
    if (!object)
        return tl::unexpected(object.error());
    RunRecord record;
    take(*object, "origin_ns", record.originNs);
    for (auto [key, target] : {std::pair("asked", &record.asked), std::pair("resolved", &record.resolved)}) {
        if (const auto found = object->find(key); found != object->end() && found->is_object())
            *target = *found;
    }
    if (const auto command = object->find("command"); command != object->end() && command->is_array()) {
        for (const json &word : *command) {
            if (word.is_string())
                record.command.push_back(word.get<std::string>());
        }
    }
    if (const auto versions = object->find("versions"); versions != object->end() && versions->is_object()) {
        for (const auto &[name, version] : versions->items()) {
            if (version.is_string())
                record.versions[name] = version.get<std::string>();
        }
    }
    return record;
}

Result<int64_t> readOriginNs(const RunFolder &folder)
{
    const auto record = readRunRecord(folder);
    if (!record)
        return tl::unexpected(record.error());
    if (record->originNs <= 0)
        return fail("{} has no origin_ns.", folder.runFile().string());
    return record->originNs;
}

} // namespace shardscope::run
