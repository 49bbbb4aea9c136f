// SPDX-License-Identifier: Apache-2.0
// Loops that the compiler turns into vector code, a clone a level of x86-64 (chosen when the program starts). The flags
// of this file (CMakeLists.txt) let it reorder sums; it still keeps NaN and infinity.
#include "core/model/kernels/cpu_types.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace shardscope::model::kernels::cpu {

namespace {

/// e^x to 2 units in the last place by Cody and Waite's reduction; a plain expf is a call and stops vectorisation.
SHARDSCOPE_INLINE float fastExp(float x)
{
    x = std::min(std::max(x, -87.33F), 88.37F);
    const float scaled = x * 1.44269504F;
    const int32_t n = static_cast<int32_t>(scaled + (scaled < 0 ? -0.5F : 0.5F));
    const float nf = static_cast<float>(n);
    const float r = (x - nf * 0.693359375F) + nf * 2.12194440e-4F;
    float p = 1.9875691500e-4F;
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = p * r * r + r + 1.0F;
    return p * std::bit_cast<float>((n + 127) << 23);
}

SHARDSCOPE_INLINE float sigmoid(float x)
{
    return 1.0F / (1.0F + fastExp(-x));
}

template <typename T>
SHARDSCOPE_INLINE void rmsNormForwardOf(T *y, float *rstd, T *sum, const T *x, const T *residual, const T *weight,
                                        int64_t rows, int64_t width, float eps)
{
    for (int64_t row = 0; row < rows; ++row) {
        const T *in = x + row * width;
        if (residual) {
            const T *other = residual + row * width;
            T *out = sum + row * width;
            SHARDSCOPE_ELEMENTWISE
            for (int64_t i = 0; i < width; ++i)
                store(out, i, load(in, i) + load(other, i));
            in = out;
        }
        float squares = 0;
        SHARDSCOPE_ELEMENTWISE
        for (int64_t i = 0; i < width; ++i)
            squares += load(in, i) * load(in, i);
        const float scale = 1.0F / std::sqrt(squares / static_cast<float>(width) + eps);
        rstd[row] = scale;
        T *out = y + row * width;
        SHARDSCOPE_ELEMENTWISE
        for (int64_t i = 0; i < width; ++i)
            store(out, i, load(in, i) * scale * load(weight, i));
    }
}

template <typename T>
SHARDSCOPE_INLINE void rmsNormBackwardOf(T *dx, float *dWeight, const T *dy, const T *x, const T *weight,
                                         const float *rstd, const T *addend, int64_t rows, int64_t width)
{
    for (int64_t row = 0; row < rows; ++row) {
        const T *gradient = dy + row * width;
        const T *in = x + row * width;
        const float scale = rstd[row];
        float dot = 0;
        SHARDSCOPE_ELEMENTWISE
        for (int64_t i = 0; i < width; ++i) {
            const float product = load(gradient, i) * load(in, i);
            dot += product * load(weight, i);
            dWeight[i] += product * scale;
        }
        const float mean = dot * scale * scale * scale / static_cast<float>(width);
        T *out = dx + row * width;
        if (addend) {
            const T *other = addend + row * width;
            SHARDSCOPE_ELEMENTWISE
            for (int64_t i = 0; i < width; ++i)
                store(out, i, load(other, i) + load(gradient, i) * load(weight, i) * scale - load(in, i) * mean);
        } else {
            SHARDSCOPE_ELEMENTWISE
            for (int64_t i = 0; i < width; ++i)
                store(out, i, load(gradient, i) * load(weight, i) * scale - load(in, i) * mean);
        }
    }
}

template <typename T>
SHARDSCOPE_INLINE void rotate(T *out, const T *in, const float *cosine, const float *sine, int64_t half,
                              float direction)
{
    SHARDSCOPE_ELEMENTWISE
    for (int64_t i = 0; i < half; ++i) {
        const float low = load(in, i);
        const float high = load(in, i + half);
        const float s = sine[i] * direction;
        store(out, i, low * cosine[i] - high * s);
        store(out, i + half, high * cosine[i] + low * s);
    }
}

template <typename T>
SHARDSCOPE_INLINE void ropeForwardOf(T *qkv, const float *cosine, const float *sine, const QkvLayout &layout,
                                     int64_t firstRow, int64_t rows)
{
    const int64_t half = layout.headSize / 2;
    for (int64_t row = firstRow; row < firstRow + rows; ++row) {
        const int64_t position = row % layout.positions;
        T *head = qkv + row * layout.rowElements();
        for (int64_t h = 0; h < layout.heads + layout.keyValueHeads; ++h, head += layout.headSize)
            rotate(head, head, cosine + position * half, sine + position * half, half, 1.0F);
    }
}

template <typename T>
SHARDSCOPE_INLINE const T *headOf(const HeadsView &view, int64_t batch, int64_t head, int64_t position)
{
    return static_cast<const T *>(view.data) + batch * view.batchStride + head * view.headStride +
           position * view.positionStride;
}

template <typename T>
SHARDSCOPE_INLINE void ropeBackwardOf(T *dQkv, const HeadsView &dQ, const HeadsView &dK, const HeadsView &dV,
                                      const float *cosine, const float *sine, const QkvLayout &layout, int64_t firstRow,
                                      int64_t rows)
{
    const int64_t half = layout.headSize / 2;
    for (int64_t row = firstRow; row < firstRow + rows; ++row) {
        const int64_t batch = row / layout.positions;
        const int64_t position = row % layout.positions;
        const float *c = cosine + position * half;
        const float *s = sine + position * half;
        T *out = dQkv + row * layout.rowElements();
        for (int64_t h = 0; h < layout.heads; ++h, out += layout.headSize)
            rotate(out, headOf<T>(dQ, batch, h, position), c, s, half, -1.0F);
        for (int64_t h = 0; h < layout.keyValueHeads; ++h, out += layout.headSize)
            rotate(out, headOf<T>(dK, batch, h, position), c, s, half, -1.0F);
        for (int64_t h = 0; h < layout.keyValueHeads; ++h, out += layout.headSize)
            std::memcpy(out, headOf<T>(dV, batch, h, position), sizeof(T) * layout.headSize);
    }
}

template <typename T>
SHARDSCOPE_INLINE void swigluForwardOf(T *h, const T *gateUp, int64_t rows, int64_t width)
{
    for (int64_t row = 0; row < rows; ++row) {
        const T *gate = gateUp + row * 2 * width;
        const T *up = gate + width;
        T *out = h + row * width;
        SHARDSCOPE_ELEMENTWISE
        for (int64_t i = 0; i < width; ++i) {
            const float g = load(gate, i);
            store(out, i, g * sigmoid(g) * load(up, i));
        }
    }
}

template <typename T>
SHARDSCOPE_INLINE void swigluBackwardOf(T *dGateUp, T *h, const T *dh, const T *gateUp, int64_t rows, int64_t width)
{
    for (int64_t row = 0; row < rows; ++row) {
        const T *gate = gateUp + row * 2 * width;
        const T *up = gate + width;
        const T *gradient = dh + row * width;
        T *dGate = dGateUp + row * 2 * width;
        T *dUp = dGate + width;
        T *out = h + row * width;
        SHARDSCOPE_ELEMENTWISE
        for (int64_t i = 0; i < width; ++i) {
            const float g = load(gate, i);
            const float u = load(up, i);
            const float d = load(gradient, i);
            const float s = sigmoid(g);
            const float silu = g * s;
            store(out, i, silu * u);
            store(dGate, i, d * u * (s + silu * (1.0F - s)));
            store(dUp, i, d * silu);
        }
    }
}

template <typename T>
SHARDSCOPE_INLINE float logSumExp(const T *logits, int64_t vocabulary, float &largest)
{
    // Independent maxima: one alone is a chain that the compiler keeps scalar without -ffinite-math-only.
    float maxima[16];
    std::fill(std::begin(maxima), std::end(maxima), -INFINITY);
    int64_t i = 0;
    for (; i + 16 <= vocabulary; i += 16) {
        for (int64_t k = 0; k < 16; ++k) {
            const float value = load(logits, i + k);
            maxima[k] = value > maxima[k] ? value : maxima[k];
        }
    }
    largest = -INFINITY;
    for (float value : maxima)
        largest = std::max(largest, value);
    for (; i < vocabulary; ++i)
        largest = std::max(largest, load(logits, i));
    float sum = 0;
    for (i = 0; i < vocabulary; ++i)
        sum += fastExp(load(logits, i) - largest);
    return std::log(sum) + largest;
}

/// NaN where a logit is not finite: fastExp clamps, so the comparison has to be made apart.
template <typename T>
SHARDSCOPE_INLINE float poison(const T *logits, int64_t vocabulary)
{
    float sum = 0;
    SHARDSCOPE_ELEMENTWISE
    for (int64_t i = 0; i < vocabulary; ++i)
        sum += load(logits, i) * 0.0F;
    return sum;
}

template <typename T>
SHARDSCOPE_INLINE void crossEntropyOf(T *logits, float *losses, const int64_t *targets, int64_t rows,
                                      int64_t vocabulary, float scale)
{
    for (int64_t row = 0; row < rows; ++row) {
        T *line = logits + row * vocabulary;
        const int64_t target = targets[row];
        if (target < 0) {
            losses[row] = 0;
            std::memset(line, 0, sizeof(T) * vocabulary);
            continue;
        }
        float largest = 0;
        const float bad = poison(line, vocabulary);
        const float total = logSumExp(line, vocabulary, largest) + bad;
        const float atTarget = load(line, target);
        losses[row] = total - atTarget;
        SHARDSCOPE_ELEMENTWISE
        for (int64_t i = 0; i < vocabulary; ++i)
            store(line, i, fastExp(load(line, i) - total) * scale + bad);
        store(line, target, (fastExp(atTarget - total) - 1.0F) * scale + bad);
    }
}

template <typename T>
SHARDSCOPE_INLINE void crossEntropyLossOf(const T *logits, float *losses, const int64_t *targets, int64_t rows,
                                          int64_t vocabulary)
{
    for (int64_t row = 0; row < rows; ++row) {
        const T *line = logits + row * vocabulary;
        float largest = 0;
        losses[row] = targets[row] < 0
                          ? 0.0F
                          : logSumExp(line, vocabulary, largest) + poison(line, vocabulary) - load(line, targets[row]);
    }
}

template <typename T>
SHARDSCOPE_INLINE void embeddingBackwardOf(float *dWeight, const T *dx, const int64_t *tokens, int64_t rows,
                                           int64_t width)
{
    for (int64_t row = 0; row < rows; ++row) {
        float *out = dWeight + tokens[row] * width;
        const T *in = dx + row * width;
        SHARDSCOPE_ELEMENTWISE
        for (int64_t i = 0; i < width; ++i)
            out[i] += load(in, i);
    }
}

/// M: of the moments as they are kept.
template <typename M>
SHARDSCOPE_INLINE void adamWOf(float *master, M *firstMoment, M *secondMoment, const float *gradient,
                               const float *gradientScale, int64_t elements, const AdamWStep &step)
{
    const float scale = gradientScale ? *gradientScale : 1.0F;
    if (std::isnan(scale))
        return;
    const float keep = 1.0F - step.learningRate * step.weightDecay;
    const float size = step.learningRate / step.biasCorrection1;
    const float root = std::sqrt(step.biasCorrection2);
    SHARDSCOPE_ELEMENTWISE
    for (int64_t i = 0; i < elements; ++i) {
        const float g = gradient[i] * scale;
        const float before = load(firstMoment, i);
        const float m = before + (g - before) * (1.0F - step.beta1);
        const float v = step.beta2 * load(secondMoment, i) + (1.0F - step.beta2) * g * g;
        store(firstMoment, i, m);
        store(secondMoment, i, v);
        master[i] = master[i] * keep - size * m / (std::sqrt(v) / root + step.eps);
    }
}

} // namespace

SHARDSCOPE_CLONES void rmsNormForward(Precision precision, void *y, float *rstd, void *sum, const void *x,
                                      const void *residual, const void *weight, int64_t rows, int64_t width, float eps){
    SHARDSCOPE_DISPATCH(precision,
                        rmsNormForwardOf(OUT(y), rstd, OUT(sum), IN(x), IN(residual), IN(weight), rows, width, eps))}

SHARDSCOPE_CLONES void rmsNormBackward(Precision precision, void *dx, float *dWeight, const void *dy, const void *x,
                                       const void *weight, const float *rstd, const void *addend, int64_t rows,
                                       int64_t width){
    SHARDSCOPE_DISPATCH(precision,
                        rmsNormBackwardOf(OUT(dx), dWeight, IN(dy), IN(x), IN(weight), rstd, IN(addend), rows, width))}

SHARDSCOPE_CLONES void ropeForward(Precision precision, void *qkv, const float *cosine, const float *sine,
                                   const QkvLayout &layout, int64_t firstRow, int64_t rows){
    SHARDSCOPE_DISPATCH(precision, ropeForwardOf(OUT(qkv), cosine, sine, layout, firstRow, rows))}

SHARDSCOPE_CLONES
    void ropeBackward(Precision precision, void *dQkv, const HeadsView &dQ, const HeadsView &dK, const HeadsView &dV,
                      const float *cosine, const float *sine, const QkvLayout &layout, int64_t firstRow, int64_t rows){
        SHARDSCOPE_DISPATCH(precision, ropeBackwardOf(OUT(dQkv), dQ, dK, dV, cosine, sine, layout, firstRow, rows))}

SHARDSCOPE_CLONES void swigluForward(Precision precision, void *h, const void *gateUp, int64_t rows, int64_t width){
    SHARDSCOPE_DISPATCH(precision, swigluForwardOf(OUT(h), IN(gateUp), rows, width))}

SHARDSCOPE_CLONES void swigluBackward(Precision precision, void *dGateUp, void *h, const void *dh, const void *gateUp,
                                      int64_t rows, int64_t width){
    SHARDSCOPE_DISPATCH(precision, swigluBackwardOf(OUT(dGateUp), OUT(h), IN(dh), IN(gateUp), rows, width))}

SHARDSCOPE_CLONES void crossEntropy(Precision precision, void *logits, float *losses, const int64_t *targets,
                                    int64_t rows, int64_t vocabulary, float scale){
    SHARDSCOPE_DISPATCH(precision, crossEntropyOf(OUT(logits), losses, targets, rows, vocabulary, scale))}

SHARDSCOPE_CLONES void crossEntropyLoss(Precision precision, const void *logits, float *losses, const int64_t *targets,
                                        int64_t rows, int64_t vocabulary){
    SHARDSCOPE_DISPATCH(precision, crossEntropyLossOf(IN(logits), losses, targets, rows, vocabulary))}

SHARDSCOPE_CLONES void embeddingBackward(Precision precision, float *dWeight, const void *dx, const int64_t *tokens,
                                         int64_t rows, int64_t width){
    SHARDSCOPE_DISPATCH(precision, embeddingBackwardOf(dWeight, IN(dx), tokens, rows, width))}

SHARDSCOPE_CLONES void adamW(float *master, float *firstMoment, float *secondMoment, const float *gradient,
                             const float *gradientScale, int64_t elements, const AdamWStep &step)
{
    adamWOf(master, firstMoment, secondMoment, gradient, gradientScale, elements, step);
}

SHARDSCOPE_CLONES void adamW(float *master, uint16_t *firstMoment, uint16_t *secondMoment, const float *gradient,
                             const float *gradientScale, int64_t elements, const AdamWStep &step)
{
    static_assert(sizeof(Bf16) == sizeof(uint16_t));
    adamWOf(master, reinterpret_cast<Bf16 *>(firstMoment), reinterpret_cast<Bf16 *>(secondMoment), gradient,
            gradientScale, elements, step);
}

SHARDSCOPE_CLONES double sumOfSquares(const float *values, int64_t elements)
{
    double sum = 0;
    SHARDSCOPE_ELEMENTWISE
    for (int64_t i = 0; i < elements; ++i)
        sum += double{values[i]} * double{values[i]};
    return sum;
}

} // namespace shardscope::model::kernels::cpu
