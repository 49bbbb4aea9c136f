// SPDX-License-Identifier: Apache-2.0
// What the CUDA kernels share: elements of all precisions, launches and their check.
#pragma once

#include "core/model/kernels/kernels.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdexcept>
#include <string>

namespace shardscope::model::kernels::cuda {

constexpr int kThreads = 256;

__device__ __forceinline__ float toFloat(float value)
{
    return value;
}

__device__ __forceinline__ float toFloat(__nv_bfloat16 value)
{
    return __bfloat162float(value);
}

__device__ __forceinline__ float toFloat(__half value)
{
    return __half2float(value);
}

template <typename T>
__device__ __forceinline__ T fromFloat(float value);

template <>
__device__ __forceinline__ float fromFloat<float>(float value)
{
    return value;
}

template <>
__device__ __forceinline__ __nv_bfloat16 fromFloat<__nv_bfloat16>(float value)
{
    return __float2bfloat16_rn(value);
}

template <>
__device__ __forceinline__ __half fromFloat<__half>(float value)
{
    return __float2half_rn(value);
}

/// dWeight[column] += Σ_groups partial[group][column], in a fixed order.
static __global__ void addColumnsKernel(float *dWeight, const float *partial, int groups, int64_t width)
{
    __shared__ float sums[8][33];
    const int64_t column = int64_t{blockIdx.x} * 32 + threadIdx.x;
    float sum = 0;
    if (column < width) {
        for (int group = threadIdx.y; group < groups; group += 8)
            sum += partial[group * width + column];
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < width) {
        for (int i = 1; i < 8; ++i)
            sum += sums[i][threadIdx.x];
        dWeight[column] += sum;
    }
}

inline int64_t blocksFor(int64_t work)
{
    return (work + kThreads - 1) / kThreads;
}

template <typename T>
const T *in(const void *p)
{
    return static_cast<const T *>(p);
}

template <typename T>
T *out(void *p)
{
    return static_cast<T *>(p);
}

inline cudaStream_t on(Stream stream)
{
    return static_cast<cudaStream_t>(stream);
}

/// After each launch: one that was refused would leave its results as they were, and say nothing.
inline void check(const char *kernel)
{
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess)
        throw std::runtime_error(std::string("CUDA can't start the kernel ") + kernel + ": " +
                                 cudaGetErrorString(error));
}

} // namespace shardscope::model::kernels::cuda
