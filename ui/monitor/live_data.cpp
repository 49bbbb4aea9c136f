// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/monitor/live_data.h"

#include <algorithm>

namespace shardscope::ui {

/// Losses arrive up to two steps after a step's end, so its row changes once more.
static constexpr int64_t kUnsettledSteps = 3;
/// A step that has no end so long after it began will not get one: its rank died, or the end was lost.
static constexpr int64_t kMostOpenSteps = 4096;

/// A step's end comes about a second after its start where the device tells it: many may be open, and each of them
/// must be read again.
static int64_t firstUnsettled(const std::vector<store::StepInfo> &steps)
{
    const auto open = std::find_if(steps.begin(), steps.end(), [](const auto &step) { return !step.endNs; });
    const int64_t last = steps.back().number;
    const int64_t oldest = open == steps.end() ? last : std::max(open->number, last - kMostOpenSteps);
    return oldest - kUnsettledSteps;
}

static Result<> readSteps(store::Recording &recording, store::Index process, LiveDelta &delta)
{
    LivePosition::Process &position = delta.position.processes[process];
    Result<std::vector<store::StepInfo>> steps = recording.steps(process, position.nextStep);
    if (!steps)
        return tl::unexpected<Error>(steps.error());
    if (!steps->empty())
        position.nextStep = std::max(position.nextStep, firstUnsettled(*steps));
    delta.steps.insert(delta.steps.end(), steps->begin(), steps->end());
    return {};
}

static Result<> readMemory(store::Recording &recording, store::Index process, LiveDelta &delta,
                           const store::CancelToken &cancel)
{
    LivePosition::Process &position = delta.position.processes[process];
    Result<std::vector<store::MemoryColumns>> places =
        recording.memory(process, position.nextMemoryNs, store::kEnd, cancel);
    if (!places)
        return tl::unexpected<Error>(places.error());
    // "device" where there is one: on the CPU the host's memory is the device's.
    auto place = std::find_if(places->begin(), places->end(), [](const auto &one) { return one.place == "device"; });
    if (place == places->end())
        place = std::find_if(places->begin(), places->end(), [](const auto &one) { return one.place == "host"; });
    if (place == places->end() || place->timeNs.empty())
        return {};
    // The peaks of steps that may still change are not there yet, but will lie before the samples that are.
    position.nextMemoryNs = place->timeNs.back() + 1;
    for (const store::StepInfo &step : delta.steps) {
        if (step.process == process && step.number >= position.nextStep)
            position.nextMemoryNs = std::min(position.nextMemoryNs, step.startNs);
    }
    delta.memory.push_back(std::move(*place));
    return {};
}

Result<std::shared_ptr<const LiveDelta>> loadLive(store::Recording &recording, const LivePosition &position,
                                                  const store::CancelToken &cancel)
{
    auto delta = std::make_shared<LiveDelta>();
    delta->position = position;
    delta->catalog = recording.catalog();
    for (size_t i = 0; i < delta->catalog->processes.size(); ++i) {
        if (!delta->catalog->processes[i].rank)
            continue;
        if (cancel.cancelled())
            return fail("cancelled");
        const store::Index process = static_cast<store::Index>(i);
        if (Result<> read = readSteps(recording, process, *delta); !read)
            return tl::unexpected<Error>(read.error());
        if (Result<> read = readMemory(recording, process, *delta, cancel); !read)
            return tl::unexpected<Error>(read.error());
    }
    Result<std::vector<store::EventInfo>> events = recording.events(position.events);
    if (!events)
        return tl::unexpected<Error>(events.error());
    for (const store::EventInfo &event : *events) {
        int64_t &last = delta->position.events[event.process];
        last = std::max(last, event.row);
    }
    delta->events = std::move(*events);
    return delta;
}

} // namespace shardscope::ui
