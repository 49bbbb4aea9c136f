// SPDX-License-Identifier: Apache-2.0
// Times training steps of the engine alone, without recorder, loop or data: the counterpart of torch_fsdp.py, whose
// options and random tokens it has. One process a rank (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT); rank 0 prints
// JSON.
#include "core/base/clock.h"
#include "core/model/decoder.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/torch.h>

namespace shardscope {

struct BenchOptions
{
    std::string size = "tiny", dtype = "bf16", strategy = "full", device = "cpu", optimizer = "adamw";
    int64_t batch = 4, positions = 256, steps = 10, warmup = 3, accumulation = 1, threads = 1;
    double learningRate = 3e-4, clipNorm = 0;
    std::string offloadParameters = "none", offloadGradients = "none", offloadOptimizer = "none", offloadPath;
    bool deterministic = false, noPrefetch = false, activationOffload = false;
    std::string recompute = "off";
    int64_t recomputeEvery = 1;
    int rank = 0, worldSize = 1;
};

static int64_t environmentNumber(const char *name, int64_t otherwise)
{
    const char *text = std::getenv(name);
    return text ? std::strtol(text, nullptr, 10) : otherwise;
}

static BenchOptions parse(int argc, char **argv)
{
    BenchOptions o;
    CLI::App app("Times steps of the engine alone");
    app.add_option("--size", o.size);
    app.add_option("--dtype", o.dtype)->check(CLI::IsMember({"fp32", "bf16"}));
    app.add_option("--strategy", o.strategy)->check(CLI::IsMember({"full", "grad_op", "none"}));
    app.add_option("--device", o.device)->check(CLI::IsMember({"cpu", "cuda"}));
    app.add_option("--optimizer", o.optimizer)->check(CLI::IsMember({"adamw", "sgd"}));
    app.add_option("--batch", o.batch, "sequences a rank and micro-batch");
    app.add_option("--seq", o.positions);
    app.add_option("--steps", o.steps);
    app.add_option("--warmup", o.warmup);
    app.add_option("--accumulation", o.accumulation);
    app.add_option("--threads", o.threads);
    app.add_option("--lr", o.learningRate);
    app.add_option("--clip", o.clipNorm);
    app.add_option("--offload-parameters", o.offloadParameters)->check(CLI::IsMember({"none", "cpu", "nvme"}));
    app.add_option("--offload-gradients", o.offloadGradients)->check(CLI::IsMember({"none", "cpu"}));
    app.add_option("--offload-optimizer", o.offloadOptimizer)->check(CLI::IsMember({"none", "cpu", "nvme"}));
    app.add_option("--offload-path", o.offloadPath);
    app.add_flag("--deterministic", o.deterministic);
    app.add_flag("--no-prefetch", o.noPrefetch);
    app.add_option("--recompute", o.recompute)->check(CLI::IsMember({"off", "selective", "block"}));
    app.add_option("--recompute-every", o.recomputeEvery)->check(CLI::PositiveNumber);
    app.add_flag("--activation-offload", o.activationOffload);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &error) {
        std::exit(app.exit(error));
    }
    o.rank = static_cast<int>(environmentNumber("RANK", 0));
    o.worldSize = static_cast<int>(environmentNumber("WORLD_SIZE", 1));
    return o;
}

static c10::intrusive_ptr<c10d::Store> makeStore(const BenchOptions &o)
{
    if (o.worldSize == 1)
        return nullptr;
    c10d::TCPStoreOptions options;
    options.port = static_cast<uint16_t>(environmentNumber("MASTER_PORT", 29500));
    options.isServer = o.rank == 0;
    options.numWorkers = static_cast<size_t>(o.worldSize);
    return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

static void synchronize(at::Device device)
{
    if (device.is_cuda())
        c10::cuda::device_synchronize();
}

static int64_t peakBytes(at::Device device)
{
    if (device.is_cuda())
        return c10::cuda::CUDACachingAllocator::getDeviceStats(device.index()).allocated_bytes[0].peak;
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmHWM:"))
            return std::stoll(line.substr(6)) * 1024;
    }
    return 0;
}

static int run(const BenchOptions &o)
{
    const at::Device device = o.device == "cuda"
                                  ? at::Device(at::kCUDA, static_cast<int8_t>(environmentNumber("LOCAL_DEVICE", 0)))
                                  : at::Device(at::kCPU);
    if (device.is_cuda())
        c10::cuda::set_device(device.index());
    at::set_num_threads(static_cast<int>(o.threads));
    at::globalContext().setDeterministicAlgorithms(o.deterministic, false);
    observe::Observer observer;
    auto communicator = engine::Communicator::create({makeStore(o), o.rank, o.worldSize, device}, observer);
    if (!communicator) {
        std::fprintf(stderr, "%s\n", communicator.error().text.c_str());
        return 1;
    }
    config::RunConfiguration configuration;
    configuration.parallel.strategy = *fromText<Strategy>(o.strategy);
    configuration.precision.compute = *fromText<Precision>(o.dtype);
    configuration.optimizer.kind = *fromText<OptimizerKind>(o.optimizer);
    configuration.parallel.forwardPrefetch = !o.noPrefetch;
    configuration.parallel.prefetch = o.noPrefetch ? Prefetch::Off : Prefetch::Pre;
    configuration.offload.parameters = *fromText<OffloadPlace>(o.offloadParameters);
    configuration.offload.gradients = *fromText<OffloadPlace>(o.offloadGradients);
    configuration.offload.optimizer = *fromText<OffloadPlace>(o.offloadOptimizer);
    configuration.offload.path = o.offloadPath;
    const auto shape = shapes::presetShape(o.size);
    if (!shape) {
        std::fprintf(stderr, "%s\n", shape.error().text.c_str());
        return 2;
    }
    configuration.memory.recompute = *fromText<Recompute>(o.recompute);
    configuration.memory.recomputeEvery = o.recomputeEvery;
    configuration.memory.activationOffload = o.activationOffload;
    model::Decoder decoder(*shape, configuration, **communicator, observer);
    decoder.engine().initialize(0);
    auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(1234 + o.rank));
    const double scale = 1.0 / static_cast<double>(o.batch * o.accumulation * o.worldSize * o.positions);
    std::vector<double> milliseconds, losses, norms;
    engine::StepScalars scalars;
    for (int64_t step = 0; step < o.warmup + o.steps; ++step) {
        std::vector<at::Tensor> micro;
        for (int64_t i = 0; i < o.accumulation; ++i)
            micro.push_back(
                at::randint(0, shape->vocabulary, {o.batch, o.positions + 1}, generator, at::TensorOptions(at::kLong))
                    .to(device));
        synchronize(device);
        const int64_t startNs = monotonicNs();
        if (o.clipNorm == 0)
            decoder.engine().expectUpdate(o.learningRate);
        at::Tensor loss;
        for (int64_t i = 0; i < o.accumulation; ++i) {
            const at::Tensor &tokens = micro[static_cast<size_t>(i)];
            const at::Tensor one =
                decoder.forwardBackward(tokens.slice(1, 0, o.positions).contiguous(), tokens.slice(1, 1).contiguous(),
                                        scale, i + 1 == o.accumulation);
            loss = loss.defined() ? loss + one : one;
        }
        scalars = decoder.engine().reduceScalars(loss);
        decoder.engine().optimizerStep(o.learningRate, o.clipNorm, scalars);
        synchronize(device);
        if (step >= o.warmup)
            milliseconds.push_back(static_cast<double>(monotonicNs() - startNs) / 1e6);
        losses.push_back(scalars.host().lossSum);
        norms.push_back(scalars.host().gradientNorm());
    }
    std::ranges::sort(milliseconds);
    const double median = milliseconds[milliseconds.size() / 2];
    if (o.rank == 0) {
        const nlohmann::json line = {
            {"engine", "shardscope"},
            {"size", o.size},
            {"world", o.worldSize},
            {"strategy", o.strategy},
            {"dtype", o.dtype},
            {"device", o.device},
            {"recompute", o.recompute},
            {"activation_offload", o.activationOffload},
            {"batch", o.batch},
            {"seq", o.positions},
            {"step_ms_median", median},
            {"step_ms_min", milliseconds.front()},
            {"tokens_per_s_rank", static_cast<double>(o.batch * o.accumulation * o.positions) / median * 1e3},
            {"peak_bytes", peakBytes(device)},
            {"losses", losses},
            {"gradient_norms", norms}};
        std::printf("%s\n", line.dump().c_str());
        std::fflush(stdout);
    }
    (*communicator)->barrier();
    return 0;
}

} // namespace shardscope

int main(int argc, char **argv)
{
    return shardscope::run(shardscope::parse(argc, argv));
}
