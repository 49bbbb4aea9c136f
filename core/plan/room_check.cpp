// SPDX-License-Identifier: Apache-2.0
#include "core/plan/room_check.h"

#include "core/base/text.h"
#include "core/config/registry.h"

#include <algorithm>
#include <fmt/ranges.h>

namespace shardscope::plan {

using config::RunConfiguration;

namespace {

/// One configuration of the job, as far as its rules fit it.
Result<StepForecast> predict(const shapes::ModelPlan &plan, const shapes::ModelShape &shape,
                             const RunConfiguration &configuration)
{
    return shapes::replanned(plan, configuration).map([&](const shapes::ModelPlan &replanned) {
        return forecastOf(replanned, shape, configuration);
    });
}

/// What may be set to need less, from what costs least time to what costs most.
std::vector<std::pair<std::string_view, std::string_view>> savings(DeviceKind device)
{
    std::vector<std::pair<std::string_view, std::string_view>> all = {{"parallel.strategy", "grad_op"},
                                                                      {"parallel.strategy", "full"},
                                                                      {"parallel.prefetch_depth", "1"},
                                                                      {"memory.recompute", "selective"},
                                                                      {"memory.recompute", "block"}};
    if (device == DeviceKind::Cuda)
        all.insert(
            all.end(),
            {{"offload.optimizer", "cpu"}, {"memory.activation_offload", "true"}, {"offload.parameters", "cpu"}});
    else
        all.insert(all.end(), {{"offload.optimizer", "nvme"}, {"offload.parameters", "nvme"}});
    return all;
}

/// "memory.recompute=block (9.1 GiB)", for what fits.
std::string remedies(const shapes::ModelPlan &plan, const shapes::ModelShape &shape, const StepForecast &now,
                     const RunConfiguration &next, const Room &room, int64_t limitBytes)
{
    std::vector<std::string> texts;
    for (const auto &[key, value] : savings(room.device)) {
        RunConfiguration changed = next;
        if (!config::setKey(changed, key, value))
            continue;
        const auto predicted = predict(plan, shape, changed);
        if (!predicted)
            continue;
        const int64_t peak = predictedPeak(now, *predicted, room.peakBytes);
        if (peak <= limitBytes)
            texts.push_back(fmt::format("{}={} ({})", key, value, formatBytes(peak)));
    }
    if (texts.empty())
        return "No single key brings it below that: take several of memory.recompute=block, parallel.strategy=full "
               "and offload.optimizer, or less of what was asked for.";
    return fmt::format("Each of these with it would fit: {}.", fmt::join(texts, ", "));
}

std::string categories(const StepForecast &forecast)
{
    const LedgerBytes &states = forecast.states;
    const std::string text =
        fmt::format("parameters {}, optimizer {}, gathered {}, gradients {}, activations {}, temporary {}",
                    formatBytes(states.parameters), formatBytes(states.optimizer), formatBytes(states.gathered),
                    formatBytes(states.gradients), formatBytes(forecast.activations), formatBytes(forecast.temporary));
    return forecast.other == 0 ? text : fmt::format("{}, other {}", text, formatBytes(forecast.other));
}

} // namespace

int64_t predictedPeak(const StepForecast &now, const StepForecast &next, int64_t measuredPeakBytes)
{
    return measuredPeakBytes + next.total() - now.total();
}

std::string warningOfNeed(const StepForecast &forecast, int64_t capacityBytes)
{
    if (forecast.total() <= capacityBytes)
        return {};
    return fmt::format(
        "Warning: a rank is predicted to need more than {} ({}), and it can have {}: it will most likely "
        "run out of memory. memory.recompute, parallel.strategy and offload.* make it need less.",
        formatBytes(forecast.total()), categories(forecast), formatBytes(capacityBytes));
}

Result<> checkRoom(const shapes::ModelPlan &plan, const shapes::ModelShape &shape, const RunConfiguration &now,
                   const RunConfiguration &next, const Room &room)
{
    const auto before = predict(plan, shape, now);
    const auto after = predict(plan, shape, next);
    if (!before || !after) // whether its rules fit is not asked here
        return {};
    const int64_t peak = predictedPeak(*before, *after, room.peakBytes);
    const int64_t moreOnHost = after->hostBytes - before->hostBytes;
    if (room.freeHostBytes && moreOnHost > *room.freeHostBytes)
        return fail("This needs {} more of the host's memory a rank, and {} are free for each.",
                    formatBytes(moreOnHost), formatBytes(*room.freeHostBytes));
    if (!room.freeBytes || peak <= room.peakBytes)
        return {};
    const int64_t limitBytes = room.peakBytes + *room.freeBytes;
    if (peak <= limitBytes)
        return {};
    return fail(
        "The predicted peak of a rank is {} ({}, the rest as measured {}), and it can have {}: {} that it holds "
        "at its peak now, and {} that are free. {}",
        formatBytes(peak), categories(*after), formatBytes(std::max<int64_t>(0, peak - after->total())),
        formatBytes(limitBytes), formatBytes(room.peakBytes), formatBytes(*room.freeBytes),
        remedies(plan, shape, *before, next, room, limitBytes));
}

} // namespace shardscope::plan
