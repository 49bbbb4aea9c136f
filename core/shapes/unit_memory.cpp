// SPDX-License-Identifier: Apache-2.0
// Letters as in core/model: M tokens of the micro-batch, C hidden width, A all query heads, K all key heads, F hidden
// of the feed-forward, V vocabulary; a name with two of them is the bytes of such a matrix in the compute dtype.
#include "core/shapes/unit_memory.h"

#include "core/shapes/attention_memory.h"

#include <algorithm>

namespace shardscope::shapes {

namespace {

constexpr int64_t kFp64 = 8;
/// Groups of rows that CUDA's kernel for the norm's backward sums by themselves (core/model/kernels/kernels.cu).
constexpr int64_t kNormGroups = 264;

/// A weight's gradient comes out of its product in fp32, or in the compute dtype beside the fp32 one
/// (model::ops::linearBackwardWeight()).
int64_t productBytes(const WorkSize &work, int64_t elements)
{
    const bool isFp32 =
        work.compute == Precision::Fp32 || (work.compute == Precision::Bf16 && work.device == DeviceKind::Cuda);
    return isFp32 ? 0 : elements * work.elementBytes();
}

int64_t normBackwardBytes(const ModelShape &shape, const WorkSize &work)
{
    return work.device == DeviceKind::Cuda ? kNormGroups * shape.hidden * kFp32Bytes : 0;
}

/// A block's forward, recomputation and backward, as in core/model/block.cpp.
class BlockWalk
{
public:
    BlockWalk(const ModelShape &shape, const WorkSize &work, const BlockWork &block)
        : m_shape(shape)
        , m_work(work)
        , m_block(block)
        , m_attention(shape, work, shape.windowOf(block.layer))
        , m_A(shape.heads * shape.headSize)
        , m_K(shape.keyValueHeads * shape.headSize)
    {
    }
    UnitMemory memory()
    {
        UnitMemory memory;
        forward();
        memory.forwardBytes = m_walk.peak();
        dropRecomputed();
        memory.leftBytes = MC() + (m_block.recompute == Recompute::Off ? 0 : MC());
        memory.keptBytes = m_walk.live();
        m_walk = {};
        m_walk.take(memory.keptBytes);
        if (m_block.recompute != Recompute::Off)
            recompute();
        feedForwardBackward();
        attentionBackward();
        memory.backwardBytes = m_walk.peak();
        return memory;
    }

private:
    int64_t bytes(int64_t columns) const { return m_work.rows() * columns * m_work.elementBytes(); }
    int64_t MC() const { return bytes(m_shape.hidden); }
    int64_t MF() const { return bytes(m_shape.ffnHidden); }
    int64_t MA() const { return bytes(m_A); }
    int64_t Mqkv() const { return bytes(m_A + 2 * m_K); }
    int64_t statistics() const { return kFp32Bytes * m_work.rows(); }
    int64_t normedHeads() const
    {
        return bytes(m_A + m_K) + kFp32Bytes * m_work.rows() * (m_shape.heads + m_shape.keyValueHeads);
    }
    int64_t repeatedHeads() const { return m_A == m_K ? 0 : 2 * MA(); }
    int64_t weightProduct(int64_t elements) const
    {
        return m_block.givesWeightGradients ? productBytes(m_work, elements) : 0;
    }

    void forward()
    {
        m_walk.take(statistics() + MC() + (m_block.layer > 0 ? MC() : 0));
        qkv();
        attention();
        m_walk.take(MC());
        intoFeedForward();
        m_walk.use(MF());
        m_walk.give(MC()); // y
    }
    void qkv()
    {
        m_walk.take(Mqkv());
        if (m_shape.queryKeyValueBias)
            m_walk.use((m_A + 2 * m_K) * m_work.elementBytes());
    }
    void attention()
    {
        const int64_t inputs = repeatedHeads() + (m_shape.queryKeyNorm ? normedHeads() : 0);
        m_walk.take(inputs);
        m_attention.forward(m_walk);
        m_walk.give(inputs);
    }
    void intoFeedForward()
    {
        m_walk.take(MC() + statistics() + 2 * MF());
        if (m_shape.feedForwardBias)
            m_walk.use(2 * m_shape.ffnHidden * m_work.elementBytes());
    }
    /// What the block handed on is not its own any more either.
    void dropRecomputed()
    {
        m_walk.give(MC());
        if (m_block.recompute == Recompute::Off)
            return;
        m_walk.give(2 * statistics() + MC() + Mqkv() + 2 * MF());
        if (m_block.recompute == Recompute::Block)
            m_walk.give(m_attention.leftBytes());
    }
    void recompute()
    {
        m_walk.take(statistics() + MC());
        qkv();
        if (m_block.recompute == Recompute::Block)
            attention();
        m_walk.take(MC());
        intoFeedForward();
        m_walk.give(2 * MC());
    }
    void feedForwardBackward()
    {
        m_walk.take(MF());
        m_walk.use(weightProduct(m_shape.hidden * m_shape.ffnHidden));
        m_walk.give(MF());
        m_walk.take(MC());
        m_walk.use(weightProduct(2 * m_shape.ffnHidden * m_shape.hidden));
        m_walk.use(normBackwardBytes(m_shape, m_work));
        m_walk.give(MC() + 2 * MF() + MC());
    }
    void attentionBackward()
    {
        m_walk.take(Mqkv());
        m_walk.use(weightProduct(m_shape.hidden * m_A));
        m_walk.take(MA());
        attentionGradients();
        m_walk.give(MA() + m_attention.leftBytes() + Mqkv());
        m_walk.take(MC());
        m_walk.use(weightProduct((m_A + 2 * m_K) * m_shape.hidden));
        m_walk.use(normBackwardBytes(m_shape, m_work));
    }
    void attentionGradients()
    {
        const int64_t inputs = m_shape.queryKeyNorm ? normedHeads() : 0;
        m_walk.take(inputs + repeatedHeads());
        m_attention.backward(m_walk);
        m_walk.give(repeatedHeads());
        if (repeatedHeads() > 0) { // gradients of the heads that shared one are added up, k's and then v's
            m_walk.use(bytes(m_K));
            m_walk.give(MA() - bytes(m_K));
            m_walk.use(bytes(m_K));
            m_walk.give(MA() - bytes(m_K));
        }
        m_walk.give(inputs + MA() + 2 * bytes(m_K));
    }

    const ModelShape &m_shape;
    const WorkSize &m_work;
    const BlockWork &m_block;
    AttentionMemory m_attention;
    int64_t m_A;
    int64_t m_K;
    MemoryWalk m_walk;
};

} // namespace

UnitMemory embeddingMemory(const ModelShape &shape, const WorkSize &work)
{
    const int64_t MC = work.rows() * shape.hidden * work.elementBytes();
    return {.keptBytes = MC, .forwardBytes = MC};
}

UnitMemory blockMemory(const ModelShape &shape, const WorkSize &work, const BlockWork &block)
{
    return BlockWalk(shape, work, block).memory();
}

int64_t logitRows(DeviceKind device, int64_t rows, int64_t rowBytes)
{
    static constexpr int64_t kBytesCuda = int64_t{256} << 20;
    static constexpr int64_t kBytesCpu = int64_t{64} << 20;
    static constexpr int64_t kMultiple = 128;
    const int64_t fitting = (device == DeviceKind::Cuda ? kBytesCuda : kBytesCpu) / rowBytes;
    return std::min(std::max(fitting / kMultiple * kMultiple, kMultiple), rows);
}

UnitMemory headMemory(const ModelShape &shape, const WorkSize &work, bool givesWeightGradients)
{
    const int64_t MC = work.rows() * shape.hidden * work.elementBytes();
    MemoryWalk walk;
    walk.take(2 * MC + 2 * kFp32Bytes * work.rows());
    const int64_t rowBytes = shape.vocabulary * work.elementBytes();
    walk.take(logitRows(work.device, work.rows(), rowBytes) * rowBytes);
    if (givesWeightGradients)
        walk.use(productBytes(work, shape.vocabulary * shape.hidden));
    walk.take(kFp64 + MC);
    walk.use(normBackwardBytes(shape, work));
    return {.forwardBytes = walk.peak(), .leftBytes = MC};
}

} // namespace shardscope::shapes
