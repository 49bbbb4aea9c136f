// SPDX-License-Identifier: Apache-2.0
#include "app/worker/run_place.h"

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/config/configuration_file.h"
#include "core/config/registry.h"
#include "core/files/checkpoint_folder.h"
#include "core/run/run_record.h"

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>
#include <torch/version.h>

namespace shardscope::worker {

namespace fs = std::filesystem;
using nlohmann::json;

static std::optional<fs::path> newestCheckpoint(const run::RunFolder &folder)
{
    const files::CheckpointFolder checkpoints(folder.checkpointsFolder());
    const auto newest = checkpoints.newest();
    for (const fs::path &damaged : checkpoints.damagedAfterNewest())
        spdlog::warn("The checkpoint {} is damaged and left out.", damaged.string());
    return newest ? std::optional(newest->path) : std::nullopt;
}

Result<RunPlace> supervisedPlace(const Arguments &arguments, const RankEnvironment &environment)
{
    const auto root = absolutePath(arguments.out);
    if (!root)
        return tl::unexpected(root.error());
    RunPlace place{run::RunFolder(*root)};
    place.attempt = environment.attempt.value_or(place.folder.lastAttempt());
    place.resumeFrom = environment.resumeFrom;
    const auto originNs = run::readOriginNs(place.folder);
    if (!originNs)
        return tl::unexpected(originNs.error());
    place.originNs = *originNs;
    return place;
}

static Result<> writeRecord(const RunPlace &place, const Arguments &arguments,
                            const config::RunConfiguration &configuration)
{
    run::RunRecord record;
    record.originNs = place.originNs;
    record.command = arguments.commandLine;
    for (const auto &[key, text] : config::changedKeys(configuration))
        record.asked[key] = text;
    record.resolved = config::toJson(configuration);
    record.versions = {{"shardscope", SHARDSCOPE_VERSION}, {"torch", TORCH_VERSION}};
    return run::writeRunRecord(place.folder, record);
}

static Result<RunPlace> nextAttempt(const run::RunFolder &folder)
{
    RunPlace place{folder};
    place.attempt = folder.lastAttempt() + 1;
    place.resumeFrom = newestCheckpoint(folder);
    const auto originNs = run::readOriginNs(folder);
    if (!originNs)
        return tl::unexpected(originNs.error());
    place.originNs = *originNs;
    return place;
}

static Result<> fillAttempt(const RunPlace &place, bool first, const Arguments &arguments,
                            const config::RunConfiguration &configuration)
{
    Result<> made = place.folder.createAttempt(place.attempt);
    if (made && first)
        made = writeRecord(place, arguments, configuration);
    if (made)
        made = config::writeConfiguration(place.folder.configFile(place.attempt), config::toJson(configuration));
    return made;
}

Result<OwnPlace> makePlace(const Arguments &arguments, const RankEnvironment &environment,
                           const config::RunConfiguration &configuration)
{
    const auto root = absolutePath(arguments.out);
    if (!root)
        return tl::unexpected(root.error());
    run::RunFolder folder(*root);
    const bool goesOn = folder.looksLikeRun() && (arguments.resume || environment.restarts > 0);
    if (arguments.resume && !goesOn)
        return fail("There is no run in {} to resume. Leave --resume out to begin one there.", folder.root().string());
    if (!goesOn) {
        auto created = run::createRunFolder(folder.root());
        if (!created)
            return tl::unexpected(created.error());
    }
    auto lock = run::RunLock::acquire(folder);
    if (!lock)
        return tl::unexpected(lock.error());
    Result<RunPlace> place = goesOn ? nextAttempt(folder) : RunPlace{folder, 1, realtimeNs(), std::nullopt};
    if (!place)
        return tl::unexpected(place.error());
    if (auto filled = fillAttempt(*place, !goesOn, arguments, configuration); !filled) {
        std::error_code ignored; // the message that matters is the one before
        fs::remove_all(goesOn ? folder.attemptFolder(place->attempt) : folder.root(), ignored);
        return tl::unexpected(filled.error());
    }
    return OwnPlace{std::move(*place), std::move(*lock)};
}

// Paths go as lists of bytes: they need not be UTF-8.
static json pathToJson(const fs::path &path)
{
    const std::string &text = path.native();
    return json::binary(std::vector<uint8_t>(text.begin(), text.end()));
}

static fs::path pathFromJson(const json &value)
{
    const auto &bytes = value.get_binary();
    return std::string(bytes.begin(), bytes.end());
}

std::string encodePlace(const RunPlace &place)
{
    const json object = {{"folder", pathToJson(place.folder.root())},
                         {"attempt", place.attempt},
                         {"origin_ns", place.originNs},
                         {"resume", place.resumeFrom ? pathToJson(*place.resumeFrom) : json(nullptr)}};
    const std::vector<uint8_t> bytes = json::to_cbor(object);
    return {bytes.begin(), bytes.end()};
}

Result<RunPlace> decodePlace(const std::string &bytes)
{
    try {
        const json object = json::from_cbor(bytes);
        RunPlace place{run::RunFolder(pathFromJson(object.at("folder")))};
        place.attempt = object.at("attempt").get<int>();
        place.originNs = object.at("origin_ns").get<int64_t>();
        if (!object.at("resume").is_null())
            place.resumeFrom = pathFromJson(object.at("resume"));
        return place;
    } catch (const std::exception &error) {
        return fail("Rank 0's word on the run's folder can't be read: {}", error.what());
    }
}

} // namespace shardscope::worker
