// SPDX-License-Identifier: Apache-2.0
// Norms of single heads with their rotation, and sums of columns. A warp takes a head: lane l has its elements l, l +
// 32, … and those half a head further, which RoPE rotates with them.
#include "core/model/kernels/cuda_types.cuh"

#include <algorithm>

namespace shardscope::model::kernels::cuda {

namespace {

constexpr int kWarps = kThreads / 32;
/// Blocks of the backward: each leaves one partial sum of the weights' gradients.
constexpr int kHeadGroups = 1056;
/// Blocks that share a column's rows.
constexpr int kColumnGroups = 32;

__device__ __forceinline__ float warpSum(float value)
{
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_xor_sync(0xffffffffU, value, offset);
    return value;
}

/// This lane's pairs of a head.
template <int kPairs>
struct Pairs
{
    float low[kPairs];
    float high[kPairs];

    template <typename T>
    __device__ __forceinline__ void load(const T *from, int half)
    {
#pragma unroll
        for (int p = 0; p < kPairs; ++p) {
            const int i = p * 32 + threadIdx.x % 32;
            low[p] = i < half ? toFloat(from[i]) : 0.0F;
            high[p] = i < half ? toFloat(from[i + half]) : 0.0F;
        }
    }
    template <typename T>
    __device__ __forceinline__ void store(T *to, int half) const
    {
#pragma unroll
        for (int p = 0; p < kPairs; ++p) {
            const int i = p * 32 + threadIdx.x % 32;
            if (i < half) {
                to[i] = fromFloat<T>(low[p]);
                to[i + half] = fromFloat<T>(high[p]);
            }
        }
    }
    /// direction 1 rotates forward, −1 back.
    __device__ __forceinline__ void rotate(const float *cosine, const float *sine, int half, float direction)
    {
#pragma unroll
        for (int p = 0; p < kPairs; ++p) {
            const int i = p * 32 + threadIdx.x % 32;
            const float c = i < half ? cosine[i] : 0.0F;
            const float s = i < half ? sine[i] * direction : 0.0F;
            const float first = low[p] * c - high[p] * s;
            high[p] = high[p] * c + low[p] * s;
            low[p] = first;
        }
    }
};

template <typename T, int kPairs>
__global__ void headNormRopeForwardKernel(T *qk, float *rstd, const T *qkv, const T *qWeight, const T *kWeight,
                                          const float *cosine, const float *sine, QkvLayout layout, float eps)
{
    const int64_t heads = layout.heads + layout.keyValueHeads;
    const int64_t item = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
    if (item >= layout.batch * layout.positions * heads)
        return;
    const int half = static_cast<int>(layout.headSize / 2);
    const int64_t row = item / heads;
    const int64_t head = item % heads;
    Pairs<kPairs> x;
    x.load(qkv + row * layout.rowElements() + head * layout.headSize, half);
    float squares = 0;
#pragma unroll
    for (int p = 0; p < kPairs; ++p)
        squares += x.low[p] * x.low[p] + x.high[p] * x.high[p];
    const float scale = rsqrtf(warpSum(squares) / static_cast<float>(layout.headSize) + eps);
    if (threadIdx.x % 32 == 0)
        rstd[item] = scale;
    Pairs<kPairs> w;
    w.load(head < layout.heads ? qWeight : kWeight, half);
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
        x.low[p] *= scale * w.low[p];
        x.high[p] *= scale * w.high[p];
    }
    const int64_t angle = row % layout.positions * half;
    x.rotate(cosine + angle, sine + angle, half, 1.0F);
    x.store(qk + item * layout.headSize, half);
}

template <typename T>
__device__ __forceinline__ const T *positionOf(const HeadsView &view, int64_t batch, int64_t head, int64_t position)
{
    return static_cast<const T *>(view.data) + batch * view.batchStride + head * view.headStride +
           position * view.positionStride;
}

/// Adds the warps' shares of a weight's gradient, in their order, and writes the block's.
template <int kPairs>
__device__ void writeShare(float *partial, const Pairs<kPairs> &share, int half)
{
    __shared__ float shares[kWarps][2 * 32 * kPairs];
    __syncthreads(); // of the weight before
    float *mine = shares[threadIdx.x / 32];
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
        const int i = p * 32 + threadIdx.x % 32;
        mine[i] = share.low[p];
        mine[32 * kPairs + i] = share.high[p];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 2 * half; i += kThreads) {
        const int at = i < half ? i : 32 * kPairs + i - half;
        float sum = 0;
        for (int warp = 0; warp < kWarps; ++warp)
            sum += shares[warp][at];
        partial[i] = sum;
    }
}

/// partial: [2][gridDim.x][headSize], q's weight and k's.
template <typename T, int kPairs>
__global__ void headNormRopeBackwardKernel(T *dQkv, float *partial, HeadsView dQ, HeadsView dK, HeadsView dV,
                                           const T *qkv, const float *rstd, const T *qWeight, const T *kWeight,
                                           const float *cosine, const float *sine, QkvLayout layout)
{
    const int half = static_cast<int>(layout.headSize / 2);
    const int64_t normed = layout.heads + layout.keyValueHeads;
    const int64_t heads = normed + layout.keyValueHeads;
    const int64_t items = layout.batch * layout.positions * heads;
    Pairs<kPairs> shareQ = {};
    Pairs<kPairs> shareK = {};
    for (int64_t item = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32; item < items;
         item += int64_t{gridDim.x} * kWarps) {
        const int64_t row = item / heads;
        const int64_t head = item % heads;
        const int64_t batch = row / layout.positions;
        const int64_t position = row % layout.positions;
        const int64_t at = row * layout.rowElements() + head * layout.headSize;
        Pairs<kPairs> dy;
        if (head >= normed) {
            dy.load(positionOf<T>(dV, batch, head - normed, position), half);
            dy.store(dQkv + at, half);
            continue;
        }
        const bool isQuery = head < layout.heads;
        dy.load(isQuery ? positionOf<T>(dQ, batch, head, position)
                        : positionOf<T>(dK, batch, head - layout.heads, position),
                half);
        dy.rotate(cosine + position * half, sine + position * half, half, -1.0F);
        Pairs<kPairs> x;
        Pairs<kPairs> w;
        x.load(qkv + at, half);
        w.load(isQuery ? qWeight : kWeight, half);
        const float scale = rstd[row * normed + head];
        float dot = 0;
#pragma unroll
        for (int p = 0; p < kPairs; ++p) {
            const float low = dy.low[p] * x.low[p];
            const float high = dy.high[p] * x.high[p];
            dot += low * w.low[p] + high * w.high[p];
            shareQ.low[p] += isQuery ? low * scale : 0.0F;
            shareQ.high[p] += isQuery ? high * scale : 0.0F;
            shareK.low[p] += isQuery ? 0.0F : low * scale;
            shareK.high[p] += isQuery ? 0.0F : high * scale;
        }
        const float mean = warpSum(dot) * scale * scale * scale / static_cast<float>(layout.headSize);
#pragma unroll
        for (int p = 0; p < kPairs; ++p) {
            dy.low[p] = dy.low[p] * w.low[p] * scale - x.low[p] * mean;
            dy.high[p] = dy.high[p] * w.high[p] * scale - x.high[p] * mean;
        }
        dy.store(dQkv + at, half);
    }
    writeShare(partial + int64_t{blockIdx.x} * layout.headSize, shareQ, half);
    writeShare(partial + (int64_t{gridDim.x} + blockIdx.x) * layout.headSize, shareK, half);
}

/// partial[blockIdx.y][column] of the rows blockIdx.y, blockIdx.y + gridDim.y, …
template <typename T>
__global__ void columnSumsKernel(float *partial, const T *x, int64_t rows, int64_t width, int64_t rowStride)
{
    const int64_t column = int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (column >= width)
        return;
    float sum = 0;
    for (int64_t row = blockIdx.y; row < rows; row += gridDim.y)
        sum += toFloat(x[row * rowStride + column]);
    partial[blockIdx.y * width + column] = sum;
}

/// Calls f<T, kPairs>() with enough pairs a lane for the head.
template <typename F>
void dispatchHead(Precision precision, int64_t headSize, F f)
{
    if (headSize > kMaxNormedHead)
        throw std::invalid_argument("norms of heads take up to " + std::to_string(kMaxNormedHead) + " elements, not " +
                                    std::to_string(headSize));
    const auto withType = [&]<typename T>() {
        if (headSize <= 64)
            f.template operator()<T, 1>();
        else if (headSize <= 128)
            f.template operator()<T, 2>();
        else if (headSize <= 256)
            f.template operator()<T, 4>();
        else
            f.template operator()<T, 8>();
    };
    if (precision == Precision::Bf16)
        withType.template operator()<__nv_bfloat16>();
    else if (precision == Precision::Fp16)
        withType.template operator()<__half>();
    else
        withType.template operator()<float>();
}

void addColumns(float *sums, const float *partial, int groups, int64_t width, Stream stream)
{
    addColumnsKernel<<<(width + 31) / 32, dim3(32, 8), 0, on(stream)>>>(sums, partial, groups, width);
    check("addColumns");
}

} // namespace

void headNormRopeForward(Precision precision, void *qk, float *rstd, const void *qkv, const void *qWeight,
                         const void *kWeight, const float *cosine, const float *sine, const QkvLayout &layout,
                         float eps, Stream stream)
{
    const int64_t items = layout.batch * layout.positions * (layout.heads + layout.keyValueHeads);
    if (items == 0)
        return;
    dispatchHead(precision, layout.headSize, [&]<typename T, int kPairs>() {
        headNormRopeForwardKernel<T, kPairs><<<(items + kWarps - 1) / kWarps, kThreads, 0, on(stream)>>>(
            out<T>(qk), rstd, in<T>(qkv), in<T>(qWeight), in<T>(kWeight), cosine, sine, layout, eps);
    });
    check("headNormRopeForward");
}

int64_t headNormRopeBackwardScratch(int64_t headSize)
{
    return int64_t{2} * kHeadGroups * headSize;
}

void headNormRopeBackward(Precision precision, void *dQkv, float *dQWeight, float *dKWeight, const HeadsView &dQ,
                          const HeadsView &dK, const HeadsView &dV, const void *qkv, const float *rstd,
                          const void *qWeight, const void *kWeight, const float *cosine, const float *sine,
                          const QkvLayout &layout, float *scratch, Stream stream)
{
    const int64_t items = layout.batch * layout.positions * (layout.heads + 2 * layout.keyValueHeads);
    if (items == 0)
        return;
    const int groups = static_cast<int>(std::min<int64_t>((items + kWarps - 1) / kWarps, kHeadGroups));
    dispatchHead(precision, layout.headSize, [&]<typename T, int kPairs>() {
        headNormRopeBackwardKernel<T, kPairs><<<groups, kThreads, 0, on(stream)>>>(
            out<T>(dQkv), scratch, dQ, dK, dV, in<T>(qkv), rstd, in<T>(qWeight), in<T>(kWeight), cosine, sine, layout);
    });
    check("headNormRopeBackward");
    addColumns(dQWeight, scratch, groups, layout.headSize, stream);
    addColumns(dKWeight, scratch + groups * layout.headSize, groups, layout.headSize, stream);
}

int64_t columnSumsScratch(int64_t width)
{
    return kColumnGroups * width;
}

void columnSums(Precision precision, float *sums, const void *x, int64_t rows, int64_t width, int64_t rowStride,
                float *scratch, Stream stream)
{
    if (rows == 0)
        return;
    const int groups = static_cast<int>(std::min<int64_t>(rows, kColumnGroups));
    const dim3 grid(static_cast<unsigned>(blocksFor(width)), static_cast<unsigned>(groups));
    if (precision == Precision::Bf16)
        columnSumsKernel<<<grid, kThreads, 0, on(stream)>>>(scratch, in<__nv_bfloat16>(x), rows, width, rowStride);
    else if (precision == Precision::Fp16)
        columnSumsKernel<<<grid, kThreads, 0, on(stream)>>>(scratch, in<__half>(x), rows, width, rowStride);
    else
        columnSumsKernel<<<grid, kThreads, 0, on(stream)>>>(scratch, in<float>(x), rows, width, rowStride);
    check("columnSums");
    addColumns(sums, scratch, groups, width, stream);
}

} // namespace shardscope::model::kernels::cuda
