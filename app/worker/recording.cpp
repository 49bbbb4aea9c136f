// SPDX-License-Identifier: Apache-2.0
#include "app/worker/recording.h"

#include "core/config/configuration_file.h"
#include "profiler/allocator/cpu_memory.h"
#include "profiler/allocator/cuda_memory.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <torch/csrc/cuda/nccl.h>
#include <torch/version.h>

namespace shardscope::worker {

/// The rank's own device, and the allocator whose peak is the step's peak.
static Result<> hookDevice(collect::RecorderOptions &options, c10::Device device)
{
    if (!device.is_cuda()) {
        options.device = collect::hostDevice();
        options.memory.push_back(allocator::trackCpuMemory(options.memoryTag));
        return {};
    }
    auto description = allocator::describeCudaDevice(device.index());
    if (!description)
        return tl::unexpected(description.error());
    options.device = std::move(*description);
    auto memory = allocator::trackCudaMemory(device.index(), options.memoryTag);
    if (!memory)
        return tl::unexpected(memory.error());
    options.memory.push_back(std::move(*memory));
    return {};
}

static std::vector<std::pair<std::string, std::string>> versions(c10::Device device)
{
    std::vector<std::pair<std::string, std::string>> rows = {{"version", SHARDSCOPE_VERSION},
                                                             {"torch_version", TORCH_VERSION}};
    if (device.is_cuda()) {
        const uint64_t nccl = torch::cuda::nccl::version(); // major << 32 | minor << 16 | patch
        rows.emplace_back("nccl_version", fmt::format("{}.{}.{}", nccl >> 32, nccl >> 16 & 0xffff, nccl & 0xffff));
    }
    return rows;
}

Result<std::unique_ptr<collect::Recorder>> openRecording(const config::ResolvedRun &run, double modelFlopsPerToken,
                                                         const RunPlace &place, const RankEnvironment &environment,
                                                         const run::DatabasePlace &database, c10::Device device,
                                                         int64_t firstStep, const std::vector<std::string> &commandLine,
                                                         std::function<void(const std::string &)> trouble)
{
    const config::RunConfiguration &configuration = run.configuration;
    collect::RecorderOptions options;
    options.database = database.path();
    options.flight = place.folder.flightFile(place.attempt, environment.rank);
    options.level = configuration.record.level;
    options.keepSteps = configuration.record.keepSteps;
    options.keepFirst = configuration.record.keepFirst;
    options.maxGib = configuration.record.maxGib;
    options.attempt = place.attempt;
    options.rank = environment.rank;
    options.localRank = environment.localRank;
    options.worldSize = environment.worldSize;
    options.command = fmt::format("{}", fmt::join(commandLine, " "));
    options.compute = configuration.precision.compute;
    options.originNs = place.originNs;
    options.modelFlopsPerToken = modelFlopsPerToken;
    options.configurationJson = config::toJson(configuration).dump();
    options.firstStep = firstStep;
    options.trouble = std::move(trouble);
    options.meta = versions(device);
    options.memoryTag = std::make_shared<collect::CurrentMemoryTag>();
    if (auto hooked = hookDevice(options, device); !hooked)
        return tl::unexpected(hooked.error());
    return collect::Recorder::open(std::move(options));
}

} // namespace shardscope::worker
