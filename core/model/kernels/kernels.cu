// SPDX-License-Identifier: Apache-2.0
// Rows are read in vectors of 16 bytes where width and addresses allow it, else element by element (kVector = 1).
#include "core/model/kernels/cuda_types.cuh"

#include <algorithm>

namespace shardscope::model::kernels::cuda {

namespace {

constexpr int kNormGroups = 264; // two blocks for each multiprocessor of an H100 or H200

/// kVector elements of T, loaded and stored at once.
template <typename T, int kVector>
struct alignas(sizeof(T) * kVector) Pack
{
    T values[kVector];
};

template <typename T, int kVector>
__device__ __forceinline__ void loadFloats(float (&out)[kVector], const T *from)
{
    const auto pack = *reinterpret_cast<const Pack<T, kVector> *>(from);
#pragma unroll
    for (int i = 0; i < kVector; ++i)
        out[i] = toFloat(pack.values[i]);
}

template <typename T, int kVector>
__device__ __forceinline__ void storeFloats(T *to, const float (&in)[kVector])
{
    Pack<T, kVector> pack;
#pragma unroll
    for (int i = 0; i < kVector; ++i)
        pack.values[i] = fromFloat<T>(in[i]);
    *reinterpret_cast<Pack<T, kVector> *>(to) = pack;
}

struct Sum
{
    template <typename V>
    __device__ V operator()(V a, V b) const
    {
        return a + b;
    }
};

struct Largest
{
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

/// The reduction over all threads of the block, the same for each thread. Ends with a barrier.
template <typename V, typename Combine>
__device__ V blockReduce(V value, V neutral, Combine combine)
{
    __shared__ V partial[32];
    for (int offset = 16; offset > 0; offset /= 2)
        value = combine(value, __shfl_xor_sync(0xffffffffU, value, offset));
    const int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0)
        partial[warp] = value;
    __syncthreads();
    const int warps = blockDim.x / 32;
    value = threadIdx.x % 32 < warps ? partial[threadIdx.x % 32] : neutral;
    for (int offset = 16; offset > 0; offset /= 2)
        value = combine(value, __shfl_xor_sync(0xffffffffU, value, offset));
    __syncthreads();
    return value;
}

template <typename T, int kVector>
__global__ void rmsNormForwardKernel(T *y, float *rstd, T *sum, const T *x, const T *residual, const T *weight,
                                     int64_t width, float eps)
{
    const int64_t base = int64_t{blockIdx.x} * width;
    const T *in = x + base;
    float squares = 0;
    for (int64_t i = threadIdx.x * kVector; i < width; i += blockDim.x * kVector) {
        float v[kVector];
        loadFloats(v, in + i);
        if (residual) {
            float r[kVector];
            loadFloats(r, residual + base + i);
#pragma unroll
            for (int k = 0; k < kVector; ++k)
                v[k] = toFloat(fromFloat<T>(v[k] + r[k]));
            storeFloats(sum + base + i, v);
        }
#pragma unroll
        for (int k = 0; k < kVector; ++k)
            squares += v[k] * v[k];
    }
    const float scale = rsqrtf(blockReduce(squares, 0.0F, Sum()) / static_cast<float>(width) + eps);
    if (threadIdx.x == 0)
        rstd[blockIdx.x] = scale;
    // Each thread reads back what it wrote itself.
    const T *normed = residual ? sum + base : in;
    for (int64_t i = threadIdx.x * kVector; i < width; i += blockDim.x * kVector) {
        float v[kVector];
        float w[kVector];
        loadFloats(v, normed + i);
        loadFloats(w, weight + i);
#pragma unroll
        for (int k = 0; k < kVector; ++k)
            v[k] *= scale * w[k];
        storeFloats(y + base + i, v);
    }
}

/// Block b takes rows b, b + kNormGroups, …; its share of the weight's gradient stays in registers until the end.
template <typename T, int kVector, int kParts>
__global__ void rmsNormBackwardKernel(T *dx, float *partial, const T *dy, const T *x, const T *weight,
                                      const float *rstd, const T *addend, int64_t rows, int64_t width)
{
    float dWeight[kParts][kVector] = {};
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const int64_t base = row * width;
        const float scale = rstd[row];
        float gw[kParts][kVector];
        float in[kParts][kVector];
        float dot = 0;
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
            const int64_t i = (int64_t{part} * kThreads + threadIdx.x) * kVector;
            if (i >= width)
                continue;
            float w[kVector];
            loadFloats(gw[part], dy + base + i);
            loadFloats(in[part], x + base + i);
            loadFloats(w, weight + i);
#pragma unroll
            for (int k = 0; k < kVector; ++k) {
                dWeight[part][k] += gw[part][k] * in[part][k] * scale;
                gw[part][k] *= w[k];
                dot += gw[part][k] * in[part][k];
            }
        }
        const float mean = blockReduce(dot, 0.0F, Sum()) * scale * scale * scale / static_cast<float>(width);
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
            const int64_t i = (int64_t{part} * kThreads + threadIdx.x) * kVector;
            if (i >= width)
                continue;
            float out[kVector] = {};
            if (addend)
                loadFloats(out, addend + base + i);
#pragma unroll
            for (int k = 0; k < kVector; ++k)
                out[k] += gw[part][k] * scale - in[part][k] * mean;
            storeFloats(dx + base + i, out);
        }
    }
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
        const int64_t i = (int64_t{part} * kThreads + threadIdx.x) * kVector;
        if (i < width)
            storeFloats(partial + blockIdx.x * width + i, dWeight[part]);
    }
}

/// direction 1 rotates forward, −1 back. low and high are the halves of one head.
template <int kVector>
__device__ __forceinline__ void rotate(float (&low)[kVector], float (&high)[kVector], const float *cosine,
                                       const float *sine, float direction)
{
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
        const float c = cosine[k];
        const float s = sine[k] * direction;
        const float first = low[k] * c - high[k] * s;
        high[k] = high[k] * c + low[k] * s;
        low[k] = first;
    }
}

template <typename T, int kVector>
__global__ void ropeForwardKernel(T *qkv, const float *cosine, const float *sine, QkvLayout layout)
{
    const int64_t half = layout.headSize / 2;
    const int64_t vectors = half / kVector;
    const int64_t perRow = (layout.heads + layout.keyValueHeads) * vectors;
    const int64_t index = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (index >= layout.batch * layout.positions * perRow)
        return;
    const int64_t row = index / perRow;
    const int64_t head = index % perRow / vectors;
    const int64_t i = index % vectors * kVector;
    T *at = qkv + row * layout.rowElements() + head * layout.headSize + i;
    const int64_t angle = row % layout.positions * half + i;
    float low[kVector];
    float high[kVector];
    loadFloats(low, at);
    loadFloats(high, at + half);
    rotate(low, high, cosine + angle, sine + angle, 1.0F);
    storeFloats(at, low);
    storeFloats(at + half, high);
}

template <typename T, int kVector>
__global__ void ropeBackwardKernel(T *dQkv, HeadsView dQ, HeadsView dK, HeadsView dV, const float *cosine,
                                   const float *sine, QkvLayout layout)
{
    const int64_t half = layout.headSize / 2;
    const int64_t vectors = half / kVector;
    const int64_t perRow = (layout.heads + 2 * layout.keyValueHeads) * vectors;
    const int64_t index = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (index >= layout.batch * layout.positions * perRow)
        return;
    const int64_t row = index / perRow;
    const int64_t head = index % perRow / vectors;
    const int64_t i = index % vectors * kVector;
    const bool isQuery = head < layout.heads;
    const bool isKey = !isQuery && head < layout.heads + layout.keyValueHeads;
    const HeadsView &view = isQuery ? dQ : isKey ? dK : dV;
    const int64_t headInView = isQuery ? head
                               : isKey ? head - layout.heads
                                       : head - layout.heads - layout.keyValueHeads;
    const T *from = static_cast<const T *>(view.data) + row / layout.positions * view.batchStride +
                    headInView * view.headStride + row % layout.positions * view.positionStride + i;
    float low[kVector];
    float high[kVector];
    loadFloats(low, from);
    loadFloats(high, from + half);
    const int64_t angle = row % layout.positions * half + i;
    if (isQuery || isKey)
        rotate(low, high, cosine + angle, sine + angle, -1.0F);
    T *to = dQkv + row * layout.rowElements() + head * layout.headSize + i;
    storeFloats(to, low);
    storeFloats(to + half, high);
}

__device__ __forceinline__ float sigmoid(float x)
{
    return 1.0F / (1.0F + __expf(-x));
}

template <typename T, int kVector>
__global__ void swigluForwardKernel(T *h, const T *gateUp, int64_t rows, int64_t width)
{
    const int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kVector;
    if (i >= rows * width)
        return;
    const T *gate = gateUp + i / width * 2 * width + i % width;
    float g[kVector];
    float u[kVector];
    loadFloats(g, gate);
    loadFloats(u, gate + width);
#pragma unroll
    for (int k = 0; k < kVector; ++k)
        g[k] = g[k] * sigmoid(g[k]) * u[k];
    storeFloats(h + i, g);
}

template <typename T, int kVector>
__global__ void swigluBackwardKernel(T *dGateUp, T *h, const T *dh, const T *gateUp, int64_t rows, int64_t width)
{
    const int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kVector;
    if (i >= rows * width)
        return;
    const int64_t at = i / width * 2 * width + i % width;
    float g[kVector];
    float u[kVector];
    float d[kVector];
    float out[kVector];
    loadFloats(g, gateUp + at);
    loadFloats(u, gateUp + at + width);
    loadFloats(d, dh + i);
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
        const float s = sigmoid(g[k]);
        const float silu = g[k] * s;
        out[k] = silu * u[k];
        g[k] = d[k] * u[k] * (s + silu * (1.0F - s));
        u[k] = d[k] * silu;
    }
    storeFloats(h + i, out);
    storeFloats(dGateUp + at, g);
    storeFloats(dGateUp + at + width, u);
}

/// log Σ e^logit of a row, in one pass (Milakov and Gimelshein 2018). Not finite where a logit is not.
template <typename T, int kVector>
__device__ float logSumExp(const T *line, int64_t vocabulary)
{
    float largest = -INFINITY;
    float sum = 0;
    for (int64_t i = threadIdx.x * kVector; i < vocabulary; i += blockDim.x * kVector) {
        float v[kVector];
        loadFloats(v, line + i);
        float top = largest;
#pragma unroll
        for (int k = 0; k < kVector; ++k)
            top = fmaxf(top, v[k]);
        float added = 0;
#pragma unroll
        for (int k = 0; k < kVector; ++k)
            added += __expf(v[k] - top);
        sum = sum * __expf(largest - top) + added;
        largest = top;
    }
    const float rowLargest = blockReduce(largest, -INFINITY, Largest());
    // A thread without elements has sum 0 and largest −∞; e^(−∞ − x) is 0.
    const float share = sum == 0.0F ? 0.0F : sum * __expf(largest - rowLargest);
    return logf(blockReduce(share, 0.0F, Sum())) + rowLargest;
}

template <typename T, int kVector, bool kGradient>
__global__ void crossEntropyKernel(T *logits, float *losses, const int64_t *targets, int64_t vocabulary, float scale,
                                   const double *gradientScale)
{
    if (gradientScale)
        scale *= static_cast<float>(*gradientScale);
    T *line = logits + int64_t{blockIdx.x} * vocabulary;
    const int64_t target = targets[blockIdx.x];
    float total = 0;
    if (target >= 0)
        total = logSumExp<T, kVector>(line, vocabulary);
    if (threadIdx.x == 0)
        losses[blockIdx.x] = target < 0 ? 0.0F : total - toFloat(line[target]);
    if constexpr (kGradient) {
        __syncthreads(); // the target's logit is read before it is overwritten
        for (int64_t i = threadIdx.x * kVector; i < vocabulary; i += blockDim.x * kVector) {
            float v[kVector];
            loadFloats(v, line + i);
#pragma unroll
            for (int k = 0; k < kVector; ++k)
                v[k] = target < 0 ? 0.0F : (__expf(v[k] - total) - (i + k == target ? 1.0F : 0.0F)) * scale;
            storeFloats(line + i, v);
        }
    }
}

template <typename T>
__global__ void embeddingBackwardKernel(float *dWeight, const T *dx, const int64_t *tokens, int64_t rows, int64_t width)
{
    const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < rows * width)
        atomicAdd(dWeight + tokens[i / width] * width + i % width, toFloat(dx[i]));
}

template <typename M, int kVector>
__global__ void adamWKernel(float *master, M *firstMoment, M *secondMoment, const float *gradient,
                            const float *gradientScale, int64_t elements, AdamWStep step)
{
    const int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kVector;
    if (i >= elements)
        return;
    const float scale = gradientScale ? *gradientScale : 1.0F;
    if (isnan(scale))
        return;
    const float keep = 1.0F - step.learningRate * step.weightDecay;
    const float size = step.learningRate / step.biasCorrection1;
    const float root = sqrtf(step.biasCorrection2);
    float p[kVector];
    float m[kVector];
    float v[kVector];
    float g[kVector];
    loadFloats(p, master + i);
    loadFloats(m, firstMoment + i);
    loadFloats(v, secondMoment + i);
    loadFloats(g, gradient + i);
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
        g[k] *= scale;
        m[k] += (g[k] - m[k]) * (1.0F - step.beta1);
        v[k] = step.beta2 * v[k] + (1.0F - step.beta2) * g[k] * g[k];
        p[k] = p[k] * keep - size * m[k] / (sqrtf(v[k]) / root + step.eps);
    }
    storeFloats(master + i, p);
    storeFloats(firstMoment + i, m);
    storeFloats(secondMoment + i, v);
}

__global__ void sumOfSquaresKernel(double *partial, const float *values, int64_t elements)
{
    double sum = 0;
    for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += int64_t{gridDim.x} * blockDim.x)
        sum += double{values[i]} * double{values[i]};
    sum = blockReduce(sum, 0.0, Sum());
    if (threadIdx.x == 0)
        partial[blockIdx.x] = sum;
}

__global__ void addPartialSumsKernel(double *sum, const double *partial, int count)
{
    double total = 0;
    for (int i = threadIdx.x; i < count; i += blockDim.x)
        total += partial[i];
    total = blockReduce(total, 0.0, Sum());
    if (threadIdx.x == 0)
        *sum += total;
}

template <typename... Pointers>
bool allAligned(int64_t bytes, const Pointers *...pointers)
{
    return ((reinterpret_cast<uintptr_t>(pointers) % bytes == 0) && ...);
}

/// Threads for a row: enough for one vector each, a warp at least.
int threadsForRow(int64_t vectors, int most)
{
    return static_cast<int>(std::clamp<int64_t>((vectors + 31) / 32 * 32, 32, most));
}

/// Calls f<T, kVector>(): the precision's type, and vectors of 16 bytes where they fit.
template <typename F>
void dispatch(Precision precision, bool vectors, F f)
{
    if (precision == Precision::Bf16) {
        if (vectors)
            f.template operator()<__nv_bfloat16, 8>();
        else
            f.template operator()<__nv_bfloat16, 1>();
    } else if (precision == Precision::Fp16) {
        if (vectors)
            f.template operator()<__half, 8>();
        else
            f.template operator()<__half, 1>();
    } else {
        if (vectors)
            f.template operator()<float, 4>();
        else
            f.template operator()<float, 1>();
    }
}

int64_t vectorElements(Precision precision)
{
    return precision == Precision::Fp32 ? 4 : 8;
}

template <typename M>
void launchAdamW(float *master, M *firstMoment, M *secondMoment, const float *gradient, const float *gradientScale,
                 int64_t elements, const AdamWStep &step, Stream stream)
{
    if (elements == 0)
        return;
    if (elements % 4 == 0 && allAligned(16, master, firstMoment, secondMoment, gradient))
        adamWKernel<M, 4><<<blocksFor(elements / 4), kThreads, 0, on(stream)>>>(
            master, firstMoment, secondMoment, gradient, gradientScale, elements, step);
    else
        adamWKernel<M, 1><<<blocksFor(elements), kThreads, 0, on(stream)>>>(master, firstMoment, secondMoment, gradient,
                                                                            gradientScale, elements, step);
    check("adamW");
}

} // namespace

void rmsNormForward(Precision precision, void *y, float *rstd, void *sum, const void *x, const void *residual,
                    const void *weight, int64_t rows, int64_t width, float eps, Stream stream)
{
    const bool vectors = width % vectorElements(precision) == 0 && allAligned(16, y, sum, x, residual, weight);
    if (rows == 0)
        return;
    dispatch(precision, vectors, [&]<typename T, int kVector>() {
        rmsNormForwardKernel<T, kVector><<<rows, threadsForRow(width / kVector, kThreads), 0, on(stream)>>>(
            out<T>(y), rstd, out<T>(sum), in<T>(x), in<T>(residual), in<T>(weight), width, eps);
    });
    check("rmsNormForward");
}

int64_t rmsNormBackwardScratch(int64_t width)
{
    return kNormGroups * width;
}

void rmsNormBackward(Precision precision, void *dx, float *dWeight, const void *dy, const void *x, const void *weight,
                     const float *rstd, const void *addend, float *scratch, int64_t rows, int64_t width, Stream stream)
{
    if (width > kMaxNormWidth)
        throw std::invalid_argument("rmsNormBackward takes rows of up to " + std::to_string(kMaxNormWidth) +
                                    " elements, not " + std::to_string(width));
    if (rows == 0)
        return;
    const bool vectors = width % vectorElements(precision) == 0 && allAligned(16, dx, dy, x, weight, addend, scratch);
    const int groups = static_cast<int>(std::min<int64_t>(rows, kNormGroups));
    dispatch(precision, vectors, [&]<typename T, int kVector>() {
        const auto launch = [&]<int kParts>() {
            rmsNormBackwardKernel<T, kVector, kParts><<<groups, kThreads, 0, on(stream)>>>(
                out<T>(dx), scratch, in<T>(dy), in<T>(x), in<T>(weight), rstd, in<T>(addend), rows, width);
        };
        const int64_t parts = (width + int64_t{kThreads} * kVector - 1) / (int64_t{kThreads} * kVector);
        if (parts <= 1)
            launch.template operator()<1>();
        else if (parts <= 2)
            launch.template operator()<2>();
        else if (parts <= 4)
            launch.template operator()<4>();
        else if (parts <= 8)
            launch.template operator()<8>();
        else if constexpr (kVector == 1)
            launch.template operator()<32>();
    });
    check("rmsNormBackward");
    const dim3 block(32, 8);
    addColumnsKernel<<<(width + 31) / 32, block, 0, on(stream)>>>(dWeight, scratch, groups, width);
    check("addColumns");
}

void ropeForward(Precision precision, void *qkv, const float *cosine, const float *sine, const QkvLayout &layout,
                 Stream stream)
{
    const int64_t half = layout.headSize / 2;
    const bool vectors = half % vectorElements(precision) == 0 && allAligned(16, qkv);
    dispatch(precision, vectors, [&]<typename T, int kVector>() {
        const int64_t work = layout.batch * layout.positions * (layout.heads + layout.keyValueHeads) * (half / kVector);
        if (work > 0)
            ropeForwardKernel<T, kVector>
                <<<blocksFor(work), kThreads, 0, on(stream)>>>(out<T>(qkv), cosine, sine, layout);
    });
    check("ropeForward");
}

void ropeBackward(Precision precision, void *dQkv, const HeadsView &dQ, const HeadsView &dK, const HeadsView &dV,
                  const float *cosine, const float *sine, const QkvLayout &layout, Stream stream)
{
    const int64_t vector = vectorElements(precision);
    const int64_t half = layout.headSize / 2;
    bool vectors = half % vector == 0 && allAligned(16, dQkv);
    for (const HeadsView *view : {&dQ, &dK, &dV}) {
        vectors = vectors && allAligned(16, view->data) && view->batchStride % vector == 0 &&
                  view->headStride % vector == 0 && view->positionStride % vector == 0;
    }
    dispatch(precision, vectors, [&]<typename T, int kVector>() {
        const int64_t work =
            layout.batch * layout.positions * (layout.heads + 2 * layout.keyValueHeads) * (half / kVector);
        if (work > 0)
            ropeBackwardKernel<T, kVector>
                <<<blocksFor(work), kThreads, 0, on(stream)>>>(out<T>(dQkv), dQ, dK, dV, cosine, sine, layout);
    });
    check("ropeBackward");
}

void swigluForward(Precision precision, void *h, const void *gateUp, int64_t rows, int64_t width, Stream stream)
{
    const bool vectors = width % vectorElements(precision) == 0 && allAligned(16, h, gateUp);
    if (rows == 0)
        return;
    dispatch(precision, vectors, [&]<typename T, int kVector>() {
        swigluForwardKernel<T, kVector>
            <<<blocksFor(rows * width / kVector), kThreads, 0, on(stream)>>>(out<T>(h), in<T>(gateUp), rows, width);
    });
    check("swigluForward");
}

void swigluBackward(Precision precision, void *dGateUp, void *h, const void *dh, const void *gateUp, int64_t rows,
                    int64_t width, Stream stream)
{
    const bool vectors = width % vectorElements(precision) == 0 && allAligned(16, dGateUp, h, dh, gateUp);
    if (rows == 0)
        return;
    dispatch(precision, vectors, [&]<typename T, int kVector>() {
        swigluBackwardKernel<T, kVector><<<blocksFor(rows * width / kVector), kThreads, 0, on(stream)>>>(
            out<T>(dGateUp), out<T>(h), in<T>(dh), in<T>(gateUp), rows, width);
    });
    check("swigluBackward");
}

void crossEntropy(Precision precision, void *logits, float *losses, const int64_t *targets, int64_t rows,
                  int64_t vocabulary, float scale, Stream stream, const double *gradientScale)
{
    const bool vectors = vocabulary % vectorElements(precision) == 0 && allAligned(16, logits);
    if (rows == 0)
        return;
    dispatch(precision, vectors, [&]<typename T, int kVector>() {
        crossEntropyKernel<T, kVector, true><<<rows, threadsForRow(vocabulary / kVector, 1024), 0, on(stream)>>>(
            out<T>(logits), losses, targets, vocabulary, scale, gradientScale);
    });
    check("crossEntropy");
}

void crossEntropyLoss(Precision precision, const void *logits, float *losses, const int64_t *targets, int64_t rows,
                      int64_t vocabulary, Stream stream)
{
    const bool vectors = vocabulary % vectorElements(precision) == 0 && allAligned(16, logits);
    if (rows == 0)
        return;
    dispatch(precision, vectors, [&]<typename T, int kVector>() {
        crossEntropyKernel<T, kVector, false><<<rows, threadsForRow(vocabulary / kVector, 1024), 0, on(stream)>>>(
            const_cast<T *>(in<T>(logits)), losses, targets, vocabulary, 0.0F, nullptr);
    });
    check("crossEntropyLoss");
}

void embeddingBackward(Precision precision, float *dWeight, const void *dx, const int64_t *tokens, int64_t rows,
                       int64_t width, Stream stream)
{
    if (rows == 0)
        return;
    dispatch(precision, false, [&]<typename T, int kVector>() {
        embeddingBackwardKernel<T>
            <<<blocksFor(rows * width), kThreads, 0, on(stream)>>>(dWeight, in<T>(dx), tokens, rows, width);
    });
    check("embeddingBackward");
}

void adamW(float *master, float *firstMoment, float *secondMoment, const float *gradient, const float *gradientScale,
           int64_t elements, const AdamWStep &step, Stream stream)
{
    launchAdamW(master, firstMoment, secondMoment, gradient, gradientScale, elements, step, stream);
}

void adamW(float *master, uint16_t *firstMoment, uint16_t *secondMoment, const float *gradient,
           const float *gradientScale, int64_t elements, const AdamWStep &step, Stream stream)
{
    launchAdamW(master, reinterpret_cast<__nv_bfloat16 *>(firstMoment), reinterpret_cast<__nv_bfloat16 *>(secondMoment),
                gradient, gradientScale, elements, step, stream);
}

void sumOfSquares(double *sum, double *scratch, const float *values, int64_t elements, Stream stream)
{
    if (elements == 0)
        return;
    const int blocks = static_cast<int>(std::min<int64_t>(blocksFor(elements), kSumScratch));
    sumOfSquaresKernel<<<blocks, kThreads, 0, on(stream)>>>(scratch, values, elements);
    check("sumOfSquares");
    addPartialSumsKernel<<<1, kThreads, 0, on(stream)>>>(sum, scratch, blocks);
    check("addPartialSums");
}

} // namespace shardscope::model::kernels::cuda
