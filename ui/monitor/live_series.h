// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/monitor/live_data.h"
#include "ui/monitor/running_time.h"

#include <QString>
#include <array>
#include <map>
#include <optional>

namespace shardscope::ui {

/// Columns over one x, as Chart takes them. x is seconds of running time. Before the first point of an attempt after
/// the first stands one of NaN, where the attempt begins: no line crosses the pause.
struct ChartData
{
    std::vector<double> x;
    std::vector<std::vector<double>> columns;
    std::vector<QString> labels; ///< one a point: "Step 214", "Step 214, rank 1"; may be empty
};

/// Where a step's wall time went, in the order of the stack. kParts parts; they sum to the wall.
enum class StepPart {
    Compute,
    Optimizer,
    AllGather,
    ReduceScatter,
    OtherCommunication,
    Copy,
    IdleHost,
    IdlePeer,
    IdleOther
};
inline constexpr size_t kStepParts = 9;

/// One rank's step, as far as charts and cards need it.
struct StepPoint
{
    int rank = 0;
    int64_t startNs = 0; ///< since the run's origin
    int64_t endNs = 0;
    std::optional<double> loss;
    std::optional<double> gradientNorm;
    std::optional<double> validationLoss;
    std::optional<double> learningRate;
    std::optional<int64_t> tokens;
    std::optional<std::array<int64_t, kStepParts>> partNs;
    std::optional<int64_t> exposedNs;
    std::optional<int64_t> bareCollectivesNs; ///< store::StepSums::bareCollectivesNs()
    std::optional<int64_t> peakBytes;
    int64_t wallNs() const { return endNs - startNs; }
};

/// All that the Live page has read of a run, and the charts' columns made from it. Lives in the GUI thread; add() gets
/// what the reader thread found. Memory samples are thinned as they grow: the higher of two neighbours stays.
class LiveSeries
{
public:
    /// (attempt, step): a resumed run may do a step again.
    using StepKey = std::pair<int64_t, int64_t>;
    /// Seconds of running time; empty: all.
    using View = std::optional<std::pair<double, double>>;
    static constexpr size_t kMaxSamples = 12000; ///< of a rank
    static constexpr size_t kMaxPoints = 4000;   ///< of steps in a view; a few more where there are validation losses

    LiveSeries() = default;
    LiveSeries(LiveSeries &&) = default;
    LiveSeries &operator=(LiveSeries &&) = default;
    LiveSeries(const LiveSeries &) = delete; // m_slowest points into m_steps
    LiveSeries &operator=(const LiveSeries &) = delete;

    void clear();
    void add(const LiveDelta &delta);

    /// Ascending.
    std::vector<int> ranks() const;
    std::optional<StepKey> lastStep() const;
    /// Of one rank, or of the slowest one: the one that the others wait for. It stands least in collectives, as those
    /// that wait do it there; where that is equal or not known, its step is the longest.
    const StepPoint *step(StepKey key, std::optional<int> rank) const;
    /// Exposed communication ÷ wall time, over all ranks that have the step; empty: not measured.
    std::optional<double> exposedShare(StepKey key) const;
    /// The finished step that was under way, or had ended last, at this time.
    std::optional<StepKey> stepAt(double runningSeconds) const;
    /// From the start of the first to the end of the last of these steps; empty: there are none.
    View rangeOf(int64_t first, int64_t last) const;
    const std::vector<store::EventInfo> &events() const { return m_events; }
    /// What the charts' x counts.
    const RunningTime &time() const { return m_time; }

    // Of many steps in view the highest and the lowest of each few stand for the others, so that no outlier is lost.
    /// Columns: loss, validation loss.
    ChartData loss(const View &view = {}) const;
    /// Columns: gradient norm, learning rate.
    ChartData norm(const View &view = {}) const;
    /// kStepParts columns, or the wall alone in the first where nothing finer was recorded; the slowest rank without
    /// one. A step's values are of the time since the point before; where the first begins stands a point of NaN.
    ChartData stepTime(std::optional<int> rank, const View &view = {}) const;
    /// Categories in order, rounding, reserved, process used (NaN where not measured).
    ChartData memory(int rank) const;
    /// Parts of a step that are not zero throughout.
    static std::array<bool, kStepParts> usedParts(const ChartData &stepTime);
    static constexpr size_t kReserved = kMemoryCategories + 1;
    static constexpr size_t kProcessUsed = kMemoryCategories + 2;
    static constexpr size_t kMemoryColumns = kMemoryCategories + 3;
    /// Categories (and rounding, after them) that are not zero throughout, over all ranks.
    std::array<bool, kMemoryCategories + 1> usedCategories() const;
    /// The most of one of memory()'s columns; empty: not measured.
    std::optional<double> highest(int rank, size_t column) const;
    /// The allocator keeps more than is allocated: not on a CPU, where it has no pool.
    bool hasReserve() const;

private:
    struct Samples
    {
        std::vector<int64_t> timeNs;
        std::array<std::vector<double>, kMemoryColumns> columns;
        std::vector<double> allocated;
    };

    void addSteps(const std::vector<store::StepInfo> &steps, const store::Catalog &catalog);
    void widenTime(const LiveDelta &delta);
    double endOf(const StepKey &key, const StepPoint &point) const { return m_time.secondsOf(key.first, point.endNs); }
    QString labelOf(const StepKey &key) const;
    static void cut(Samples &samples, int64_t fromNs);
    static void addSamples(Samples &samples, const store::MemoryColumns &memory);
    static void thin(Samples &samples);
    using Points = std::vector<std::pair<StepKey, const StepPoint *>>;
    /// Of any rank.
    Points pointsOfFirst() const;
    Points thinned(const Points &all, const View &view, double (*value)(const StepPoint &)) const;
    /// lasting: a point's values are of the time up to it, so that the first needs a begin: a point of NaN.
    ChartData chartOf(const Points &points, size_t columns, void (*fill)(const StepPoint &, double *row),
                      bool lasting = false) const;
    static void addGap(ChartData &data, double x);

    std::map<int, std::map<StepKey, StepPoint>> m_steps; ///< by rank
    std::map<StepKey, const StepPoint *> m_slowest;      ///< of all ranks
    std::map<int, Samples> m_samples;                    ///< by rank
    std::vector<store::EventInfo> m_events;
    RunningTime m_time;
};

} // namespace shardscope::ui
