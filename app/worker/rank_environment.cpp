// SPDX-License-Identifier: Apache-2.0
#include "app/worker/rank_environment.h"

#include <charconv>
#include <cstdlib>
#include <limits>

namespace shardscope::worker {

std::optional<std::string> processVariable(const char *name)
{
    const char *value = std::getenv(name);
    if (!value || !*value)
        return std::nullopt;
    return value;
}

static Result<std::optional<int>> integer(const Variables &variable, const char *name, int minimum, int maximum)
{
    const auto text = variable(name);
    if (!text)
        return std::nullopt;
    int value = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc{} || end != text->data() + text->size() || value < minimum || value > maximum)
        return fail("The environment has {}={}, which must be an integer from {} to {}. Correct or unset it.", name,
                    *text, minimum, maximum);
    return value;
}

static Result<> checkPlace(const RankEnvironment &place, bool hasRank, bool hasWorldSize)
{
    if (hasRank != hasWorldSize)
        return fail("The environment has {} but not {}. Set both (as torchrun does), or unset both to train with one "
                    "rank.",
                    hasRank ? "RANK" : "WORLD_SIZE", hasRank ? "WORLD_SIZE" : "RANK");
    if (place.rank >= place.worldSize)
        return fail("The environment has RANK={} and WORLD_SIZE={}: ranks count from 0 to {}.", place.rank,
                    place.worldSize, place.worldSize - 1);
    if (place.localRank >= place.localWorldSize)
        return fail("The environment has LOCAL_RANK={} and LOCAL_WORLD_SIZE={}: local ranks count from 0 to {}.",
                    place.localRank, place.localWorldSize, place.localWorldSize - 1);
    if (place.worldSize > 1 && !place.masterPort && !place.storeFd)
        return fail("The environment has WORLD_SIZE={} but no MASTER_PORT. Set it to a free port of rank 0's machine "
                    "(torchrun does).",
                    place.worldSize);
    return {};
}

Result<RankEnvironment> readRankEnvironment(const Variables &variable)
{
    static constexpr int kMost = std::numeric_limits<int>::max();
    std::optional<int> rank, worldSize, localRank, localWorldSize, restarts, controlFd;
    RankEnvironment place;
    const struct
    {
        const char *name;
        std::optional<int> *target;
        int minimum;
        int maximum;
    } wanted[] = {
        {"RANK", &rank, 0, kMost},
        {"WORLD_SIZE", &worldSize, 1, kMost},
        {"LOCAL_RANK", &localRank, 0, kMost},
        {"LOCAL_WORLD_SIZE", &localWorldSize, 1, kMost},
        {"MASTER_PORT", &place.masterPort, 1, 65535},
        {"TORCHELASTIC_RESTART_COUNT", &restarts, 0, kMost},
        {"SHARDSCOPE_CONTROL_FD", &controlFd, 0, kMost},
        {"SHARDSCOPE_STORE_FD", &place.storeFd, 0, kMost},
        {"SHARDSCOPE_ATTEMPT", &place.attempt, 1, kMost},
    };
    for (const auto &want : wanted) {
        auto value = integer(variable, want.name, want.minimum, want.maximum);
        if (!value)
            return tl::unexpected(value.error());
        *want.target = *value;
    }
    place.rank = rank.value_or(0);
    place.worldSize = worldSize.value_or(1);
    place.localRank = localRank.value_or(place.rank);
    place.localWorldSize = localWorldSize.value_or(std::max(place.worldSize, place.localRank + 1));
    place.masterAddress = variable("MASTER_ADDR").value_or("127.0.0.1");
    place.agentStore = variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
    place.restarts = restarts.value_or(0);
    place.storePrefix = fmt::format("{}/{}", variable("TORCHELASTIC_RUN_ID").value_or("job"), place.restarts);
    place.supervised = controlFd.has_value();
    if (const auto path = variable("SHARDSCOPE_RESUME"))
        place.resumeFrom = *path;
    if (auto checked = checkPlace(place, rank.has_value(), worldSize.has_value()); !checked)
        return tl::unexpected(checked.error());
    return place;
}

} // namespace shardscope::worker
