// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>

namespace shardscope::engine {

/// What this stream is given from here on comes after all that its device's current stream has been given.
inline void followCurrentStream(const c10::cuda::CUDAStream &stream)
{
    at::cuda::CUDAEvent before;
    before.record(c10::cuda::getCurrentCUDAStream(stream.device_index()));
    before.block(stream);
}

} // namespace shardscope::engine
