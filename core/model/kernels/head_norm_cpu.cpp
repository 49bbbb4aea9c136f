// SPDX-License-Identifier: Apache-2.0
// Loops for the compiler to vectorise, as in kernels_cpu.cpp: norms of single heads, and sums of columns.
#include "core/model/kernels/cpu_types.h"

#include <cmath>
#include <cstring>

namespace shardscope::model::kernels::cpu {

namespace {

template <typename T>
SHARDSCOPE_INLINE void headNormRope(T *out, float *rstd, const T *in, const T *weight, const float *cosine,
                                    const float *sine, int64_t headSize, float eps)
{
    float squares = 0;
    SHARDSCOPE_ELEMENTWISE
    for (int64_t i = 0; i < headSize; ++i)
        squares += load(in, i) * load(in, i);
    const float scale = 1.0F / std::sqrt(squares / static_cast<float>(headSize) + eps);
    *rstd = scale;
    const int64_t half = headSize / 2;
    SHARDSCOPE_ELEMENTWISE
    for (int64_t i = 0; i < half; ++i) {
        const float low = load(in, i) * scale * load(weight, i);
        const float high = load(in, i + half) * scale * load(weight, i + half);
        store(out, i, low * cosine[i] - high * sine[i]);
        store(out, i + half, high * cosine[i] + low * sine[i]);
    }
}

template <typename T>
SHARDSCOPE_INLINE void headNormRopeForwardOf(T *qk, float *rstd, const T *qkv, const T *qWeight, const T *kWeight,
                                             const float *cosine, const float *sine, const QkvLayout &layout, float eps,
                                             int64_t firstRow, int64_t rows)
{
    const int64_t half = layout.headSize / 2;
    const int64_t heads = layout.heads + layout.keyValueHeads;
    for (int64_t row = firstRow; row < firstRow + rows; ++row) {
        const int64_t angle = row % layout.positions * half;
        for (int64_t h = 0; h < heads; ++h) {
            headNormRope(qk + (row * heads + h) * layout.headSize, rstd + row * heads + h,
                         qkv + row * layout.rowElements() + h * layout.headSize, h < layout.heads ? qWeight : kWeight,
                         cosine + angle, sine + angle, layout.headSize, eps);
        }
    }
}

/// dx of one head from dy, the gradient of its rotated norm.
template <typename T>
SHARDSCOPE_INLINE void headNormRopeBack(T *dx, float *dWeight, const T *dy, const T *in, float scale, const T *weight,
                                        const float *cosine, const float *sine, int64_t headSize)
{
    float turned[kMaxNormedHead];
    const int64_t half = headSize / 2;
    SHARDSCOPE_ELEMENTWISE
    for (int64_t i = 0; i < half; ++i) {
        const float low = load(dy, i);
        const float high = load(dy, i + half);
        turned[i] = low * cosine[i] + high * sine[i];
        turned[i + half] = high * cosine[i] - low * sine[i];
    }
    float dot = 0;
    SHARDSCOPE_ELEMENTWISE
    for (int64_t i = 0; i < headSize; ++i) {
        const float product = turned[i] * load(in, i);
        dot += product * load(weight, i);
        dWeight[i] += product * scale;
    }
    const float mean = dot * scale * scale * scale / static_cast<float>(headSize);
    SHARDSCOPE_ELEMENTWISE
    for (int64_t i = 0; i < headSize; ++i)
        store(dx, i, turned[i] * load(weight, i) * scale - load(in, i) * mean);
}

template <typename T>
SHARDSCOPE_INLINE const T *positionOf(const HeadsView &view, int64_t batch, int64_t head, int64_t position)
{
    return static_cast<const T *>(view.data) + batch * view.batchStride + head * view.headStride +
           position * view.positionStride;
}

template <typename T>
SHARDSCOPE_INLINE void
headNormRopeBackwardOf(T *dQkv, float *dQWeight, float *dKWeight, const HeadsView &dQ, const HeadsView &dK,
                       const HeadsView &dV, const T *qkv, const float *rstd, const T *qWeight, const T *kWeight,
                       const float *cosine, const float *sine, const QkvLayout &layout, int64_t firstRow, int64_t rows)
{
    const int64_t size = layout.headSize;
    const int64_t heads = layout.heads + layout.keyValueHeads;
    for (int64_t row = firstRow; row < firstRow + rows; ++row) {
        const int64_t batch = row / layout.positions;
        const int64_t position = row % layout.positions;
        const int64_t angle = position * (size / 2);
        T *out = dQkv + row * layout.rowElements();
        const T *in = qkv + row * layout.rowElements();
        for (int64_t h = 0; h < heads; ++h, out += size, in += size) {
            const bool isQuery = h < layout.heads;
            const T *dy =
                isQuery ? positionOf<T>(dQ, batch, h, position) : positionOf<T>(dK, batch, h - layout.heads, position);
            headNormRopeBack(out, isQuery ? dQWeight : dKWeight, dy, in, rstd[row * heads + h],
                             isQuery ? qWeight : kWeight, cosine + angle, sine + angle, size);
        }
        for (int64_t h = 0; h < layout.keyValueHeads; ++h, out += size)
            std::memcpy(out, positionOf<T>(dV, batch, h, position), sizeof(T) * static_cast<size_t>(size));
    }
}

template <typename T>
SHARDSCOPE_INLINE void columnSumsOf(float *sums, const T *x, int64_t rows, int64_t width, int64_t rowStride)
{
    for (int64_t row = 0; row < rows; ++row) {
        const T *in = x + row * rowStride;
        SHARDSCOPE_ELEMENTWISE
        for (int64_t i = 0; i < width; ++i)
            sums[i] += load(in, i);
    }
}

} // namespace

SHARDSCOPE_CLONES void headNormRopeForward(Precision precision, void *qk, float *rstd, const void *qkv,
                                           const void *qWeight, const void *kWeight, const float *cosine,
                                           const float *sine, const QkvLayout &layout, float eps, int64_t firstRow,
                                           int64_t rows){
    SHARDSCOPE_DISPATCH(precision, headNormRopeForwardOf(OUT(qk), rstd, IN(qkv), IN(qWeight), IN(kWeight), cosine, sine,
                                                         layout, eps, firstRow, rows))}

SHARDSCOPE_CLONES
    void headNormRopeBackward(Precision precision, void *dQkv, float *dQWeight, float *dKWeight, const HeadsView &dQ,
                              const HeadsView &dK, const HeadsView &dV, const void *qkv, const float *rstd,
                              const void *qWeight, const void *kWeight, const float *cosine, const float *sine,
                              const QkvLayout &layout, int64_t firstRow, int64_t rows){
        SHARDSCOPE_DISPATCH(precision,
                            headNormRopeBackwardOf(OUT(dQkv), dQWeight, dKWeight, dQ, dK, dV, IN(qkv), rstd,
                                                   IN(qWeight), IN(kWeight), cosine, sine, layout, firstRow, rows))}

SHARDSCOPE_CLONES
    void columnSums(Precision precision, float *sums, const void *x, int64_t rows, int64_t width, int64_t rowStride)
{
    SHARDSCOPE_DISPATCH(precision, columnSumsOf(sums, IN(x), rows, width, rowStride))
}

} // namespace shardscope::model::kernels::cpu
