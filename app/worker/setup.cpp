// SPDX-License-Identifier: Apache-2.0
#include "app/worker/setup.h"

#include "app/worker/cpu_products.h"
#include "core/base/clock.h"
#include "core/config/configuration_file.h"
#include "core/config/unit_rules.h"
#include "core/run/places.h"
#include "core/shapes/known_models.h"
#include "core/shapes/unit_plan.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/cuda/CUDAContext.h>
#include <algorithm>
#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <charconv>
#include <cstdlib>
#include <spdlog/spdlog.h>

namespace shardscope::worker {

static Result<config::RunConfiguration> readConfiguration(const Arguments &arguments,
                                                          const RankEnvironment &environment)
{
    auto configuration = config::readConfiguration(arguments.configuration);
    if (!configuration)
        return configuration;
    for (const std::string &assignment : arguments.assignments) {
        if (auto set = config::setAssignment(*configuration, assignment); !set)
            return tl::unexpected(set.error());
    }
    for (const std::string &text : arguments.rules) {
        auto rule = config::ruleFromText(text);
        if (!rule)
            return tl::unexpected(rule.error());
        configuration->units.push_back(std::move(*rule));
    }
    configuration->parallel.ranks = environment.worldSize;
    return configuration;
}

/// Devices are this machine's. Where a job spans several machines they are taken to be alike: the check of ranks
/// against devices is for all ranks, and a rank's device is chosen by its place on its own machine.
static config::MachineFacts factsFor(const RankEnvironment &environment)
{
    config::MachineFacts facts = config::probeMachine();
    const std::vector<config::CudaDevice> own = facts.cudaDevices;
    const int machines = environment.worldSize / environment.localWorldSize;
    for (int machine = 1; machine < machines; ++machine)
        facts.cudaDevices.insert(facts.cudaDevices.end(), own.begin(), own.end());
    return facts;
}

static int threadsOf(const config::MachineFacts &facts, const RankEnvironment &environment)
{
    int asked = 0;
    if (const auto text = processVariable("OMP_NUM_THREADS"))
        std::from_chars(text->data(), text->data() + text->size(), asked);
    return asked > 0 ? asked : std::max(1, facts.cpuThreads / environment.localWorldSize);
}

/// Several ranks on one GPU: NCCL refuses that unless each calls itself a host of its own; they talk over loopback.
static void prepareSharedDevice(const RankEnvironment &environment)
{
    if (!environment.supervised) { // else the supervisor has set both
        ::setenv("NCCL_HOSTID", fmt::format("shardscope-{}", environment.rank).c_str(), 1);
        ::setenv("NCCL_SOCKET_IFNAME", "lo", 0);
    }
    // The card is each rank's in turn, so that every piece which goes round costs turns of all: large pieces, and
    // several sockets to move them, make a step of 4 ranks three times as fast (tests/gpu/RESULTS.md). The buffers are
    // the host's, where such ranks meet.
    ::setenv("NCCL_BUFFSIZE", "67108864", 0);
    ::setenv("NCCL_SOCKET_NTHREADS", "4", 0);
    ::setenv("NCCL_NSOCKS_PERTHREAD", "4", 0);
}

static void chooseDevice(Setup &setup, const config::MachineFacts &facts, const RankEnvironment &environment)
{
    if (setup.run.device == DeviceKind::Cpu) {
        setup.deviceName = "cpu";
        return;
    }
    const int64_t ordinal = setup.run.deviceOfRank[static_cast<size_t>(environment.localRank)];
    setup.device = c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(ordinal));
    ::setenv("NCCL_SET_THREAD_NAME", "1", 0); // the timeline shows its threads' calls
    setup.deviceName = fmt::format("cuda:{} {}", ordinal, facts.cudaDevices[static_cast<size_t>(ordinal)].name);
    if (setup.run.configuration.parallel.shareDevice && environment.worldSize > 1)
        prepareSharedDevice(environment);
    if (setup.run.configuration.train.deterministic)
        ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
}

/// A line of the log now and then. Under a supervisor the tokens are there already, and only a look at them takes time.
static data::ProgressFunction logProgress()
{
    return [lastNs = monotonicNs()](const data::DataProgress &progress) mutable {
        constexpr int64_t kLineEveryNs = 5'000'000'000;
        if (monotonicNs() - lastNs >= kLineEveryNs) {
            lastNs = monotonicNs();
            spdlog::info("{}", data::toText(progress));
        }
        return true;
    };
}

Result<Setup> readSetup(const Arguments &arguments, const RankEnvironment &environment)
{
    const auto configuration = readConfiguration(arguments, environment);
    if (!configuration)
        return tl::unexpected(configuration.error());
    const config::MachineFacts facts = factsFor(environment);
    auto run = config::resolveRun(*configuration, facts, shapes::knownModels(configuration->model.path));
    if (!run)
        return tl::unexpected(run.error());
    auto model = pretrained::openModel(run->configuration);
    if (!model)
        return tl::unexpected(model.error());
    Setup setup;
    setup.run = std::move(*run);
    setup.shape = std::move(model->shape);
    setup.weights = std::move(model->weights);
    setup.warnings = std::move(model->warnings);
    const auto plan = shapes::planOf(shapes::unitsOf(setup.shape), setup.run.configuration, environment.worldSize);
    if (!plan)
        return tl::unexpected(plan.error());
    if (std::string share = shapes::trainedShare(*plan); !share.empty())
        setup.run.notes.push_back(std::move(share));
    setup.flopsPerToken = shapes::flopsPerToken(*plan, setup.shape, setup.run.configuration.train.sequenceLength);
    setup.threads = threadsOf(facts, environment);
    chooseDevice(setup, facts, environment);
    auto options =
        data::optionsOf(setup.run.configuration, setup.shape.vocabulary, run::cacheDirectory() / data::kCacheFolder);
    options.progress = logProgress();
    auto dataset = data::Dataset::open(options);
    if (!dataset)
        return tl::unexpected(dataset.error());
    setup.dataset = std::move(*dataset);
    return setup;
}

/// Shards are of any size, and the allocator rounds an allocation of its own up to whole 2 MiB: 6 % of the slices of a
/// block of 1b3 shared by eight. In segments that grow they lie side by side. Who sets the allocator keeps what is set;
/// a device whose addresses can't be mapped at will (some virtual ones) has no pools either, and keeps fixed segments.
static void letSegmentsGrow(int device)
{
    int mapped = 0;
    if (::cudaDeviceGetAttribute(&mapped, cudaDevAttrMemoryPoolsSupported, device) != cudaSuccess || !mapped)
        return;
    for (const char *name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
        if (std::getenv(name))
            return;
    }
    c10::CachingAllocator::setAllocatorSettings("expandable_segments:True");
}

void applyToLibTorch(const Setup &setup)
{
    at::set_num_threads(setup.threads);
    if (setup.run.configuration.train.deterministic)
        at::globalContext().setDeterministicAlgorithms(true, false);
    if (!setup.device.is_cuda()) {
        useFastCpuProducts();
        return;
    }
    c10::cuda::set_device(setup.device.index());
    letSegmentsGrow(setup.device.index());
    if (const int64_t cap = setup.run.configuration.memory.capBytes; cap > 0) {
        at::globalContext().lazyInitDevice(at::kCUDA);
        const auto total = static_cast<double>(at::cuda::getDeviceProperties(setup.device.index())->totalGlobalMem);
        c10::cuda::CUDACachingAllocator::setMemoryFraction(std::min(1.0, static_cast<double>(cap) / total),
                                                           setup.device.index());
    }
}

} // namespace shardscope::worker
