// SPDX-License-Identifier: Apache-2.0
#include "core/engine/gradient_offload.h"

#include "core/engine/follow_stream.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace shardscope::engine {

struct GradientOffload::Stream
{
    explicit Stream(at::Device device)
        : copies(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device.index()))
    {
    }
    c10::cuda::CUDAStream copies;
};

struct GradientOffload::Leaving
{
    at::Tensor gradient_S;
    std::shared_ptr<at::cuda::CUDAEvent> isCopied;
};

GradientOffload::GradientOffload(at::Device device)
    : m_stream(std::make_unique<Stream>(device))
{
}

GradientOffload::~GradientOffload()
{
    m_stream->copies.synchronize();
}

std::function<void()> GradientOffload::send(at::Tensor gradient_S, const at::Tensor &host_S)
{
    followCurrentStream(m_stream->copies);
    // A thread that waits for it sleeps: the processor has an update to compute.
    const auto isCopied = std::make_shared<at::cuda::CUDAEvent>(cudaEventDisableTiming | cudaEventBlockingSync);
    {
        const c10::cuda::CUDAStreamGuard guard(m_stream->copies);
        host_S.copy_(gradient_S, true);
    }
    isCopied->record(m_stream->copies);
    m_leaving.push_back({std::move(gradient_S), isCopied});
    return [isCopied] { isCopied->synchronize(); };
}

void GradientOffload::drain(size_t keep)
{
    for (; m_leaving.size() > keep; m_leaving.pop_front())
        m_leaving.front().isCopied->block(c10::cuda::getCurrentCUDAStream());
}

std::function<void()> GradientOffload::fetch(const at::Tensor &gradient_S, const at::Tensor &host_S)
{
    followCurrentStream(m_stream->copies); // its memory may be what the computation is still at
    {
        const c10::cuda::CUDAStreamGuard guard(m_stream->copies);
        gradient_S.copy_(host_S, true);
    }
    const auto isBack = std::make_shared<at::cuda::CUDAEvent>();
    isBack->record(m_stream->copies);
    return [isBack] { isBack->block(c10::cuda::getCurrentCUDAStream()); };
}

} // namespace shardscope::engine
