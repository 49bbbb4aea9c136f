// SPDX-License-Identifier: Apache-2.0
#include "core/model/activation_offload.h"

#include "core/engine/follow_stream.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <algorithm>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cstring>
#include <cuda_runtime_api.h>
#include <optional>
#include <utility>

namespace shardscope::model {

/// Tensors begin at multiples of this in a host buffer: whole cache lines and what copies like best.
static constexpr int64_t kAlignment = 256;

/// A point on the stream of the copies; without one (CPU) it is always past.
struct ActivationOffload::Moment
{
    at::cuda::CUDAEvent event;
    bool isOnDevice = false;

    /// What the current stream does from here on comes after it.
    void holdBackComputation()
    {
        if (isOnDevice)
            event.block(c10::cuda::getCurrentCUDAStream());
    }
};

/// The stream of the copies. Both directions share it: a host buffer that is copied from may be written again by any
/// later copy.
struct ActivationOffload::Stream
{
    explicit Stream(at::Device device)
    {
        if (device.is_cuda())
            stream = c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device.index());
    }
    /// Copies from here on come after all that the computation has enqueued.
    void followComputation()
    {
        if (stream)
            engine::followCurrentStream(*stream);
    }
    void copy(void *to, const void *from, int64_t bytes, cudaMemcpyKind kind)
    {
        if (stream)
            C10_CUDA_CHECK(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), kind, stream->stream()));
        else
            std::memcpy(to, from, static_cast<size_t>(bytes));
    }
    std::unique_ptr<Moment> now()
    {
        auto moment = std::make_unique<Moment>();
        if (stream) {
            moment->event.record(*stream);
            moment->isOnDevice = true;
        }
        return moment;
    }
    void finish()
    {
        if (stream)
            stream->synchronize();
    }
    std::optional<c10::cuda::CUDAStream> stream;
};

ActivationOffload::ActivationOffload(engine::Engine &engine)
    : m_engine(engine)
    , m_stream(std::make_unique<Stream>(engine.device()))
{
}

ActivationOffload::~ActivationOffload()
{
    m_stream->finish();
    for (auto &[unit, stored] : m_stored)
        m_engine.observer().memoryHeld({observe::MemoryPlace::Pinned,
                                        {MemoryCategory::Activations, unit},
                                        -stored.bytes,
                                        -stored.buffer.memory.bytes()});
    for (auto &[bytes, buffer] : m_idle)
        m_engine.observer().memoryHeld({observe::MemoryPlace::Pinned, {}, 0, -bytes});
}

static int64_t denseBytes(const at::Tensor &tensor)
{
    return tensor.numel() * tensor.element_size();
}

static int64_t aligned(int64_t bytes)
{
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void ActivationOffload::store(observe::UnitIndex unit, std::span<at::Tensor *const> tensors)
{
    finishStore();
    Stored stored;
    for (size_t i = 0; i < tensors.size(); ++i) {
        const at::Tensor &tensor = *tensors[i];
        if (!tensor.defined())
            continue;
        TORCH_CHECK(tensor.is_non_overlapping_and_dense(), "only dense tensors can be offloaded");
        stored.options = tensor.options();
        stored.places.push_back({i, stored.bytes, tensor.sizes().vec(), tensor.strides().vec()});
        stored.bytes += aligned(denseBytes(tensor));
    }
    const observe::SpanScope span(
        m_engine.observer(), {"offload activations", SpanCategory::Copy, m_engine.forwardPhase(), unit, stored.bytes});
    stored.buffer = takeBuffer(stored.bytes, unit);
    m_stream->followComputation();
    for (const Place &place : stored.places) {
        at::Tensor &tensor = *tensors[place.index];
        m_stream->copy(stored.buffer.memory.data() + place.offsetBytes, tensor.const_data_ptr(), denseBytes(tensor),
                       cudaMemcpyDeviceToHost);
        m_leaving.tensors.push_back(std::exchange(tensor, at::Tensor()));
    }
    m_leaving.isCopied = m_stream->now();
    m_stored[unit] = std::move(stored);
}

void ActivationOffload::finishStore()
{
    if (m_leaving.isCopied)
        m_leaving.isCopied->holdBackComputation();
    m_leaving = {};
}

void ActivationOffload::fetch(observe::UnitIndex unit)
{
    const auto found = m_stored.find(unit);
    if (found == m_stored.end() || found->second.isBack)
        return;
    Stored &stored = found->second;
    const observe::SpanScope span(m_engine.observer(),
                                  {"fetch activations", SpanCategory::Copy, Phase::Backward, unit, stored.bytes});
    const observe::MemoryScope memory(m_engine.observer(), {MemoryCategory::Activations, unit});
    for (const Place &place : stored.places)
        stored.fetched.push_back(at::empty_strided(place.sizes, place.strides, stored.options));
    // Their memory may be what the computation is still about to use for something else.
    m_stream->followComputation();
    for (size_t i = 0; i < stored.places.size(); ++i)
        m_stream->copy(stored.fetched[i].mutable_data_ptr(), stored.buffer.memory.data() + stored.places[i].offsetBytes,
                       denseBytes(stored.fetched[i]), cudaMemcpyHostToDevice);
    stored.isBack = m_stream->now();
}

void ActivationOffload::wait(observe::UnitIndex unit, std::span<at::Tensor *const> tensors)
{
    fetch(unit);
    auto node = m_stored.extract(unit);
    if (node.empty())
        return;
    Stored &stored = node.mapped();
    stored.isBack->holdBackComputation();
    for (size_t i = 0; i < stored.places.size(); ++i)
        *tensors[stored.places[i].index] = std::move(stored.fetched[i]);
    giveBack(std::move(stored), unit);
}

ActivationOffload::Buffer ActivationOffload::takeBuffer(int64_t bytes, observe::UnitIndex unit)
{
    const bool pinned = m_engine.device().is_cuda();
    Buffer buffer;
    // Blocks are alike, so nearly every buffer is of the size of nearly every block.
    if (auto found = m_idle.extract(engine::HostBuffer::wholePages(bytes))) {
        buffer = std::move(found.mapped());
    } else {
        auto memory = engine::HostBuffer::allocate(bytes, pinned, "offloaded activations");
        TORCH_CHECK(memory.has_value(), memory.error().text,
                    " Set memory.activation_offload = false, or true for fewer blocks by [[unit]] rules.");
        buffer.memory = std::move(*memory);
        m_engine.observer().memoryHeld({observe::MemoryPlace::Pinned, {}, 0, buffer.memory.bytes()});
    }
    buffer.lastPass = m_pass;
    m_engine.observer().memoryHeld({observe::MemoryPlace::Pinned, {MemoryCategory::Activations, unit}, bytes, 0});
    return buffer;
}

void ActivationOffload::giveBack(Stored stored, observe::UnitIndex unit)
{
    m_engine.observer().memoryHeld(
        {observe::MemoryPlace::Pinned, {MemoryCategory::Activations, unit}, -stored.bytes, 0});
    const int64_t bytes = stored.buffer.memory.bytes();
    m_idle.emplace(bytes, std::move(stored.buffer));
}

void ActivationOffload::endPass()
{
    const bool hasUnused = std::ranges::any_of(m_idle, [&](const auto &one) { return one.second.lastPass != m_pass; });
    if (hasUnused)
        m_stream->finish();
    for (auto buffer = m_idle.begin(); buffer != m_idle.end();) {
        if (buffer->second.lastPass == m_pass) {
            ++buffer;
            continue;
        }
        m_engine.observer().memoryHeld({observe::MemoryPlace::Pinned, {}, 0, -buffer->first});
        buffer = m_idle.erase(buffer);
    }
    ++m_pass;
}

} // namespace shardscope::model
