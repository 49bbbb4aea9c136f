// SPDX-License-Identifier: Apache-2.0
#include "core/plan/gradient_walk.h"

#include "core/shapes/work_size.h"

#include <algorithm>
#include <deque>
#include <set>

namespace shardscope::plan {

namespace {

class GradientWalk
{
public:
    explicit GradientWalk(const shapes::PassSettings &pass)
        : m_pass(pass)
    {
    }
    /// One micro-batch's backward.
    void backward(const std::vector<LedgerUnit> &units, bool isLast)
    {
        m_isLast = isLast;
        m_peak.beforeBytes = m_live + m_unreducedLive;
        m_peak.unitBytes.resize(units.size());
        for (size_t i = units.size(); i-- > 0;) {
            // A tied head has only its norm, and gives the embedding's weight its first gradient.
            if (units[i].plan->shape.kind == UnitKind::Head && units[i].plan->shape.parameters.size() == 1)
                write(units.front().buckets.front());
            for (const LedgerBucket &bucket : units[i].buckets)
                write(bucket);
            m_peak.unitBytes[i] = m_live + m_unreducedLive;
            for (const LedgerBucket &bucket : units[i].buckets)
                reduce(bucket);
        }
    }
    const GradientPeak &peak() const { return m_peak; }

private:
    static bool isSharded(const LedgerBucket &bucket) { return bucket.plan->settings.shardGroup > 1; }

    void note()
    {
        if (m_live + m_unreducedLive <= m_peak.bytes)
            return;
        m_peak.bytes = m_live + m_unreducedLive;
        m_peak.unreducedBytes = m_unreducedLive;
    }
    void write(const LedgerBucket &bucket)
    {
        if (bucket.plan->frozen)
            return;
        while (std::ranges::find(m_reducing, &bucket) != m_reducing.end())
            drain(m_reducing.size() - 1);
        if (!isSharded(bucket)) {
            holdSlice(bucket);
        } else if (!m_unreduced.contains(&bucket)) {
            drain(shapes::kReductionsInFlight);
            m_unreduced.insert(&bucket);
            m_unreducedLive += bucket.padded * shapes::kFp32Bytes;
            note();
        }
    }
    void holdSlice(const LedgerBucket &bucket)
    {
        if (!m_slices.insert(&bucket).second)
            return;
        m_live += bucket.held * shapes::kFp32Bytes;
        note();
    }
    void reduce(const LedgerBucket &bucket)
    {
        if (bucket.plan->frozen)
            return;
        const bool waits = m_pass.reduceEvery == ReduceEvery::Step && !m_isLast;
        if (isSharded(bucket) && !waits) {
            holdSlice(bucket);
            m_reducing.push_back(&bucket);
        } else if (!isSharded(bucket) && m_isLast) {
            drain(shapes::kReductionsInFlight);
            m_reducing.push_back(&bucket);
        }
    }
    void drain(size_t keep)
    {
        while (m_reducing.size() > keep) {
            const LedgerBucket *oldest = m_reducing.front();
            m_reducing.pop_front();
            if (m_unreduced.erase(oldest) > 0)
                m_unreducedLive -= oldest->padded * shapes::kFp32Bytes;
            if (oldest->plan->settings.offloadGradients != OffloadPlace::None)
                send(oldest);
        }
    }
    /// To the host: two copies are under way at most.
    void send(const LedgerBucket *bucket)
    {
        m_leaving.push_back(bucket);
        if (m_leaving.size() <= 2)
            return;
        m_live -= m_leaving.front()->held * shapes::kFp32Bytes;
        m_slices.erase(m_leaving.front());
        m_leaving.pop_front();
    }

    const shapes::PassSettings &m_pass;
    bool m_isLast = true;
    int64_t m_live = 0; ///< of what is reduced, or needs no reduction
    int64_t m_unreducedLive = 0;
    std::set<const LedgerBucket *> m_slices;
    std::set<const LedgerBucket *> m_unreduced;
    std::deque<const LedgerBucket *> m_reducing;
    std::deque<const LedgerBucket *> m_leaving;
    GradientPeak m_peak;
};

} // namespace

GradientPeak gradientPeakOf(const shapes::PassSettings &pass, const std::vector<LedgerUnit> &units,
                            int64_t microBatches)
{
    GradientWalk walk(pass);
    if (microBatches > 1)
        walk.backward(units, false); // the others are as this one
    walk.backward(units, true);
    return walk.peak();
}

} // namespace shardscope::plan
