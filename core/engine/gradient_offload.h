// SPDX-License-Identifier: Apache-2.0
// Shape suffix: S what a rank holds of a bucket.
#pragma once

#include <ATen/core/Tensor.h>
#include <deque>
#include <functional>
#include <memory>

namespace shardscope::engine {

/// Copies gradients to host memory and back on a stream of its own. Device memory is held until the computation has
/// been told to wait for its copy, so that the allocator sees the same calls in each step.
class GradientOffload
{
public:
    explicit GradientOffload(at::Device device);
    ~GradientOffload();

    /// Begins to copy what the current stream leaves in gradient_S. The result blocks a thread until it is on the host.
    std::function<void()> send(at::Tensor gradient_S, const at::Tensor &host_S);
    /// Frees the device's memory of all but the `keep` youngest of what was sent.
    void drain(size_t keep);
    /// Begins to copy back, behind what the current stream has before it. The result makes the current stream wait.
    std::function<void()> fetch(const at::Tensor &gradient_S, const at::Tensor &host_S);

private:
    struct Stream;
    struct Leaving;
    std::unique_ptr<Stream> m_stream;
    std::deque<Leaving> m_leaving;
};

} // namespace shardscope::engine
