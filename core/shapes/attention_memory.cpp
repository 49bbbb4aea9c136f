// SPDX-License-Identifier: Apache-2.0
#include "core/shapes/attention_memory.h"

namespace shardscope::shapes {

static int64_t roundedUp(int64_t value, int64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

AttentionMemory::AttentionMemory(const ModelShape &shape, const WorkSize &work, int64_t window)
    : m_work(work)
    , m_heads(shape.heads)
    , m_headSize(shape.headSize)
    , m_isWindowed(window > 0 && work.positions > window)
{
}

int64_t AttentionMemory::leftBytes() const
{
    return MA() + (m_work.attention == AttentionKind::Plain ? 0 : rowsOfHeads() * kFp32Bytes);
}

void AttentionMemory::forward(MemoryWalk &walk) const
{
    if (m_work.attention == AttentionKind::Plain)
        return plainForward(walk);
    const int64_t addend = takeAddend(walk);
    walk.take(leftBytes());
    walk.use(forwardWorkspace());
    walk.give(addend);
}

void AttentionMemory::backward(MemoryWalk &walk) const
{
    if (m_work.attention == AttentionKind::Plain)
        return plainBackward(walk);
    const int64_t addend = takeAddend(walk);
    walk.take(3 * MA());
    walk.use(backwardWorkspace());
    walk.give(addend);
}

/// Queries whose scores a thread of the CPU's operator has at once.
int64_t AttentionMemory::tileRows() const
{
    const int64_t most = m_work.positions >= 768 ? 256 : m_work.positions >= 192 ? 64 : 32;
    return std::min(most, m_work.positions);
}

/// The scores themselves.
int64_t AttentionMemory::tile() const
{
    return tileRows() * std::min<int64_t>(512, m_work.positions);
}

/// The CPU's threads have a tile of scores, its rows' maxima and sums and its output in fp32, and the tile in the
/// compute dtype.
int64_t AttentionMemory::forwardWorkspace() const
{
    if (m_work.attention != AttentionKind::Cpu)
        return 0;
    const int64_t fp32 = tile() + tileRows() * (2 + m_headSize);
    return m_work.threads * (fp32 * kFp32Bytes + (isHalf() ? tile() * m_work.elementBytes() : 0));
}

int64_t AttentionMemory::backwardWorkspace() const
{
    switch (m_work.attention) {
    case AttentionKind::Cpu: // two tiles a thread, and of the calling one the rows' sums of dOut · out
        return m_work.threads * 2 * tile() * (kFp32Bytes + (isHalf() ? m_work.elementBytes() : 0)) +
               tileRows() * kFp32Bytes;
    case AttentionKind::Efficient: { // those sums; not half: the products summed up, and the sums in two orders
        const int64_t sums = rowsOfHeads() * kFp32Bytes;
        return isHalf() ? sums : MA() + 2 * sums;
    }
    case AttentionKind::Cudnn:   // does not say; its gradients of bf16 are added up in fp32 too
    case AttentionKind::Flash: { // those sums, and dQ in fp32
        const int64_t headSize = roundedUp(m_headSize, m_headSize <= 128 ? 32 : 64);
        return m_work.sequences * roundedUp(m_work.positions, 128) * m_heads * (headSize + 1) * kFp32Bytes;
    }
    case AttentionKind::Plain:
        break;
    }
    return 0;
}

/// The CPU's operator has no window: it adds a matrix to the scores, which is made with the help of three masks.
int64_t AttentionMemory::takeAddend(MemoryWalk &walk) const
{
    if (!m_isWindowed || m_work.attention != AttentionKind::Cpu)
        return 0;
    const int64_t scores = m_work.positions * m_work.positions;
    walk.take(scores * m_work.elementBytes());
    walk.use(3 * scores);
    return scores * m_work.elementBytes();
}

/// Scores of all heads in fp32, twice in the softmax; beside one of them copies of q and k, in fp32 and again in the
/// order that products want.
void AttentionMemory::plainForward(MemoryWalk &walk) const
{
    const int64_t scores = rowsOfHeads() * m_work.positions * kFp32Bytes;
    const int64_t MA32 = rowsOfHeads() * m_headSize * kFp32Bytes;
    walk.use(scores + std::max(scores, (isHalf() ? 4 : 2) * MA32));
    walk.take(MA());
}

/// The weights, their gradient and that of the scores; beside them dOut, dV, dQ, dK and what their product reads. On a
/// GPU the softmax's backward has a fourth matrix of scores, grad * output, beside dV and an own fp32 copy of dOut.
void AttentionMemory::plainBackward(MemoryWalk &walk) const
{
    const int64_t scores = rowsOfHeads() * m_work.positions * kFp32Bytes;
    const int64_t MA32 = rowsOfHeads() * m_headSize * kFp32Bytes;
    walk.use(3 * scores + (isHalf() ? 6 : 4) * MA32);
    if (m_work.device == DeviceKind::Cuda)
        walk.use(4 * scores + (isHalf() ? 2 : 1) * MA32);
    walk.take(3 * MA());
}

} // namespace shardscope::shapes
