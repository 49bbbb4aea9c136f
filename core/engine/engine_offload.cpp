// SPDX-License-Identifier: Apache-2.0
// What lies off the device: where updates are made, and how gradients leave and parameters come.
#include "core/engine/engine.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <algorithm>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <ranges>
#include <thread>
#include <utility>

namespace shardscope::engine {

/// Gradients on their way to the host while the next bucket's is written.
static constexpr size_t kGradientsLeaving = 1;

/// Of the machine's processors each rank has its part, less one for the thread that trains and one for autograd's,
/// NCCL's and the recorder's.
static int defaultThreads(int ranks)
{
    const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    return std::max(1, cores / ranks - 2);
}

/// The processor updates what lies off the device altogether: 28 bytes a parameter through its memory, and no more than
/// the gradient over the bus. Where masters or moments are on the device, that does: bringing the others there and back
/// takes 8 bytes each way (both moments) in two streams, which at 55 GB/s is faster than 16 cores, and it gives the
/// bits of the update that is not offloaded.
bool Engine::updatesOnHost(const Bucket &bucket) const
{
    const auto isAway = [](const StateMemory &state) {
        return !state.defined() || state.place() != OffloadPlace::None;
    };
    return device().is_cpu() || (isAway(bucket.master) && isAway(bucket.moment1) && isAway(bucket.moment2));
}

void Engine::beginUpdate(Bucket &bucket, const UpdateRule &rule, const StepFactor &factor)
{
    if (!m_updater) {
        const int threads =
            m_options.updateThreads > 0 ? m_options.updateThreads : defaultThreads(m_communicator.worldSize());
        m_updater =
            std::make_unique<StateUpdater>(device(), threads, m_options.updateChunkElements, m_places, m_observer);
    }
    endReading(bucket); // what was read is older than what comes now
    StateUpdate update;
    update.unit = bucket.index;
    update.held = bucket.held;
    update.mostHeld =
        std::ranges::max(m_buckets | std::views::transform([](const Bucket &one) { return one.held.size(); }));
    update.decay = bucket.decay;
    update.master = bucket.master;
    update.moment1 = bucket.moment1;
    update.moment2 = bucket.moment2;
    update.copy = bucket.copy;
    update.resident_S = bucket.resident_G;
    update.rule = rule;
    update.onHost = updatesOnHost(bucket);
    if (update.onHost && device().is_cuda()) {
        if (!bucket.gradientIsAway)
            sendGradient(bucket);
        update.gradient_S = bucket.gradientOnHost.tensor();
        update.begin = [wait = bucket.waitForGradient, factorOnHost = factor.toHost()] {
            wait();
            return factorOnHost();
        };
    } else {
        fetchGradient(bucket);
        update.gradient_S = bucket.gradient_S;
        std::shared_ptr<at::cuda::CUDAEvent> isThere;
        if (device().is_cuda()) {
            isThere = std::make_shared<at::cuda::CUDAEvent>();
            isThere->record(c10::cuda::getCurrentCUDAStream());
        }
        update.begin = [isThere, factor] {
            if (isThere)
                isThere->block(c10::cuda::getCurrentCUDAStream());
            return factor.tensor();
        };
    }
    bucket.updatedGradient_S = bucket.gradient_S;
    bucket.updating = m_updater->enqueue(std::move(update));
    bucket.gradient_S.reset();
    bucket.gradientIsAway = bucket.gradientHolds = false;
}

void Engine::waitForUpdate(Bucket &bucket)
{
    if (!bucket.updating)
        return;
    const observe::SpanScope span(m_observer, {"wait for update", SpanCategory::Host, Phase::Optimizer, bucket.index});
    bucket.updating.wait();
    bucket.updating = {};
    bucket.updatedGradient_S.reset();
}

void Engine::waitForUpdates()
{
    for (Bucket &bucket : m_buckets)
        waitForUpdate(bucket);
}

void Engine::sendGradient(Bucket &bucket)
{
    if (!m_gradientOffload)
        m_gradientOffload = std::make_unique<GradientOffload>(device());
    waitForUpdate(bucket); // it reads the same memory
    if (!bucket.gradientOnHost.defined())
        bucket.gradientOnHost = m_places.make(OffloadPlace::Cpu, bucket.held.size(), at::kFloat,
                                              {MemoryCategory::Gradients, bucket.index}, "offloaded gradients");
    const observe::SpanScope span(m_observer, {"offload gradient", SpanCategory::Copy, Phase::Backward, bucket.index,
                                               bucket.held.size() * bucket.gradientOnHost.elementBytes()});
    m_gradientOffload->drain(kGradientsLeaving);
    bucket.waitForGradient = m_gradientOffload->send(std::move(bucket.gradient_S), bucket.gradientOnHost.tensor());
    bucket.gradient_S = at::Tensor();
    bucket.gradientIsAway = true;
}

/// What the current stream does from here on has the gradient in gradient_S.
void Engine::fetchGradient(Bucket &bucket)
{
    beginFetch(bucket);
    if (bucket.fetching)
        std::exchange(bucket.fetching, {})();
}

void Engine::beginFetch(Bucket &bucket)
{
    if (!bucket.gradientIsAway)
        return;
    const observe::SpanScope span(m_observer, {"fetch gradient", SpanCategory::Copy, Phase::Optimizer, bucket.index,
                                               bucket.held.size() * bucket.gradientOnHost.elementBytes()});
    bucket.gradient_S = allocate(bucket.held.size(), fp32(), MemoryCategory::Gradients, bucket.index);
    bucket.fetching = m_gradientOffload->fetch(bucket.gradient_S, bucket.gradientOnHost.tensor());
    bucket.gradientIsAway = false;
}

/// What a gather sends: on the device, on the host, or read from the file.
at::Tensor Engine::gatherSource(Bucket &bucket)
{
    const StateMemory &source = bucket.copy.defined() ? bucket.copy : bucket.master;
    if (!source.isInFile())
        return source.tensor();
    if (!m_reader)
        m_reader = std::make_unique<ParameterReader>(m_places, m_observer);
    if (!bucket.reading)
        bucket.reading = m_reader->begin(source, bucket.index, {});
    const observe::SpanScope span(m_observer, {"wait for file", SpanCategory::Host, forwardPhase(), bucket.index});
    bucket.reading->isThere.wait();
    return bucket.reading->data_S;
}

/// Begins to read what the unit after this one will gather.
void Engine::readAhead(const Unit &unit, Phase phase)
{
    const observe::UnitIndex next = unit.index + (phase == Phase::Backward ? -1 : 1);
    if (next < firstGathered(phase) || next >= unitCount())
        return;
    for (const size_t index : unitAt(next).buckets) {
        Bucket &bucket = m_buckets[index];
        const StateMemory &source = bucket.copy.defined() ? bucket.copy : bucket.master;
        if (source.isInFile() && !bucket.reading && !bucket.gathered_G.defined() && !bucket.resharded_S.defined())
            bucket.reading = m_reader->begin(source, bucket.index, bucket.updating);
    }
}

void Engine::endReading(Bucket &bucket)
{
    if (!bucket.reading)
        return;
    m_reader->end(std::move(*bucket.reading));
    bucket.reading.reset();
}

/// What copies and reads use again and again, of any size that another plan may not need.
void Engine::freeOffloadBuffers()
{
    // Host memory must outlive the copies from and to it.
    if (device().is_cuda())
        c10::cuda::device_synchronize();
    if (m_gradientOffload)
        m_gradientOffload->drain(0);
    if (m_reader)
        m_reader->freeBuffers();
    if (m_updater)
        m_updater->freeBuffers();
}

} // namespace shardscope::engine
