// SPDX-License-Identifier: Apache-2.0
// run.json: what was asked for and on what machine. Written once, when the run is made, and never again.
#pragma once

#include "core/base/result.h"
#include "core/run/run_folder.h"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace shardscope::run {

struct RunRecord
{
    int64_t originNs = 0; ///< views, JSON and exports count from here
    std::vector<std::string> command;
    nlohmann::json asked = nlohmann::json::object();    ///< the keys that a user gave
    nlohmann::json resolved = nlohmann::json::object(); ///< all keys, with what they became
    std::map<std::string, std::string> versions;        ///< shardscope, and libraries as far as known
};

/// Adds the machine (host, system, processor, cores, memory). Refuses a folder that has a run.json.
Result<> writeRunRecord(const RunFolder &folder, const RunRecord &record);
Result<RunRecord> readRunRecord(const RunFolder &folder);
/// The origin of a run's time, from run.json.
Result<int64_t> readOriginNs(const RunFolder &folder);

/// Host, system, processor, cores and memory of this machine.
nlohmann::json describeMachine();

} // namespace shardscope::run
