// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/monitor/live_series.h"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>
#include <functional>

namespace shardscope::ui {

static const double kNan = std::nan("");

static double orNan(std::optional<double> value)
{
    return value.value_or(kNan);
}

static std::array<int64_t, kStepParts> partsOf(const store::StepSums &sums)
{
    return {sums.computeNs - sums.optimizerNs,
            sums.optimizerNs,
            sums.exposedAllGatherNs,
            sums.exposedReduceScatterNs,
            sums.exposedAllReduceNs + sums.exposedOtherCommunicationNs,
            sums.exposedCopyNs,
            sums.idleHostNs,
            sums.idlePeerNs,
            sums.idleOtherNs};
}

static StepPoint pointOf(const store::StepInfo &step, int rank)
{
    StepPoint point;
    point.rank = rank;
    point.startNs = step.startNs;
    point.endNs = *step.endNs;
    point.loss = step.loss;
    point.gradientNorm = step.gradientNorm;
    point.validationLoss = step.validationLoss;
    point.learningRate = step.learningRate;
    point.tokens = step.tokens;
    point.peakBytes = step.peakAllocatedBytes;
    if (step.sums) {
        point.partNs = partsOf(*step.sums);
        point.exposedNs = step.sums->exposedCommunicationNs;
        point.bareCollectivesNs = step.sums->bareCollectivesNs();
    }
    return point;
}

/// The other waits for it, in the same step.
static bool isSlower(const StepPoint &step, const StepPoint &other)
{
    if (step.bareCollectivesNs && other.bareCollectivesNs && step.bareCollectivesNs != other.bareCollectivesNs)
        return *step.bareCollectivesNs < *other.bareCollectivesNs;
    return step.wallNs() > other.wallNs();
}

QString LiveSeries::labelOf(const StepKey &key) const
{
    if (!m_time.hasSeveral())
        return QCoreApplication::translate("LiveSeries", "Step %1").arg(key.second);
    return QCoreApplication::translate("LiveSeries", "Step %1, attempt %2").arg(key.second).arg(key.first);
}

static QString rankLabel(const StepPoint &point)
{
    return QCoreApplication::translate("LiveSeries", ", rank %1").arg(point.rank);
}

void LiveSeries::clear()
{
    *this = LiveSeries();
}

void LiveSeries::add(const LiveDelta &delta)
{
    const store::Catalog &catalog = *delta.catalog;
    widenTime(delta);
    addSteps(delta.steps, catalog);
    for (const store::MemoryColumns &memory : delta.memory) {
        const auto &process = catalog.processes[static_cast<size_t>(memory.process)];
        Samples &samples = m_samples[static_cast<int>(*process.rank)];
        addSamples(samples, memory);
        while (samples.timeNs.size() > kMaxSamples)
            thin(samples);
    }
    m_events.insert(m_events.end(), delta.events.begin(), delta.events.end());
}

/// A process that was killed has no end of its own: what it wrote last counts.
void LiveSeries::widenTime(const LiveDelta &delta)
{
    const auto &processes = delta.catalog->processes;
    for (const store::ProcessInfo &process : processes) {
        m_time.widen(process.attempt, process.startedNs);
        m_time.widen(process.attempt, process.endedNs.value_or(process.startedNs));
    }
    const auto attemptOf = [&](store::Index index) { return processes[static_cast<size_t>(index)].attempt; };
    for (const store::StepInfo &step : delta.steps)
        m_time.widen(attemptOf(step.process), step.endNs.value_or(step.startNs));
    for (const store::MemoryColumns &memory : delta.memory) {
        if (memory.size() > 0)
            m_time.widen(attemptOf(memory.process), memory.timeNs.back());
    }
}

void LiveSeries::addSteps(const std::vector<store::StepInfo> &steps, const store::Catalog &catalog)
{
    for (const store::StepInfo &step : steps) {
        const auto &process = catalog.processes[static_cast<size_t>(step.process)];
        if (!step.endNs)
            continue;
        const StepKey key{process.attempt, step.number};
        const int rank = static_cast<int>(*process.rank);
        m_steps[rank][key] = pointOf(step, rank);
        m_slowest[key] = LiveSeries::step(key, std::nullopt);
    }
}

/// Forgets the samples from a time on.
void LiveSeries::cut(Samples &samples, int64_t fromNs)
{
    const auto first = std::lower_bound(samples.timeNs.begin(), samples.timeNs.end(), fromNs);
    const auto size = static_cast<size_t>(first - samples.timeNs.begin());
    samples.timeNs.resize(size);
    samples.allocated.resize(size);
    for (auto &column : samples.columns)
        column.resize(size);
}

void LiveSeries::addSamples(Samples &samples, const store::MemoryColumns &memory)
{
    if (memory.size() > 0)
        cut(samples, memory.timeNs.front());
    for (size_t i = 0; i < memory.size(); ++i) {
        samples.timeNs.push_back(memory.timeNs[i]);
        for (size_t c = 0; c < kMemoryCategories; ++c)
            samples.columns[c].push_back(static_cast<double>(memory.categoryBytes[c][i]));
        samples.columns[kMemoryCategories].push_back(static_cast<double>(memory.roundingBytes[i]));
        samples.columns[kReserved].push_back(static_cast<double>(memory.reservedBytes[i]));
        const int64_t used = memory.processUsedBytes[i];
        samples.columns[kMemoryCategories + 2].push_back(used < 0 ? kNan : static_cast<double>(used));
        samples.allocated.push_back(static_cast<double>(memory.allocatedBytes[i]));
    }
}

void LiveSeries::thin(Samples &samples)
{
    const size_t pairs = samples.timeNs.size() / 2;
    for (size_t i = 0; i < pairs; ++i) {
        const size_t keep = samples.allocated[2 * i] >= samples.allocated[2 * i + 1] ? 2 * i : 2 * i + 1;
        samples.timeNs[i] = samples.timeNs[keep];
        samples.allocated[i] = samples.allocated[keep];
        for (auto &column : samples.columns)
            column[i] = column[keep];
    }
    samples.timeNs.resize(pairs);
    samples.allocated.resize(pairs);
    for (auto &column : samples.columns)
        column.resize(pairs);
}

std::vector<int> LiveSeries::ranks() const
{
    std::vector<int> ranks;
    for (const auto &[rank, steps] : m_steps)
        ranks.push_back(rank);
    for (const auto &[rank, samples] : m_samples) {
        if (!m_steps.contains(rank))
            ranks.push_back(rank);
    }
    std::sort(ranks.begin(), ranks.end());
    return ranks;
}

std::optional<LiveSeries::StepKey> LiveSeries::lastStep() const
{
    std::optional<StepKey> last;
    for (const auto &[rank, steps] : m_steps) {
        if (!steps.empty() && (!last || steps.rbegin()->first > *last))
            last = steps.rbegin()->first;
    }
    return last;
}

const StepPoint *LiveSeries::step(StepKey key, std::optional<int> rank) const
{
    const StepPoint *found = nullptr;
    for (const auto &[number, steps] : m_steps) {
        if (rank && number != *rank)
            continue;
        const auto step = steps.find(key);
        if (step != steps.end() && (!found || isSlower(step->second, *found)))
            found = &step->second;
    }
    return found;
}

std::optional<LiveSeries::StepKey> LiveSeries::stepAt(double runningSeconds) const
{
    if (m_steps.empty())
        return std::nullopt;
    const auto &steps = m_steps.begin()->second;
    const auto after = std::find_if(steps.begin(), steps.end(), [&](const auto &entry) {
        return endOf(entry.first, entry.second) >= runningSeconds;
    });
    if (after != steps.end())
        return after->first;
    return steps.empty() ? std::nullopt : std::optional(steps.rbegin()->first);
}

LiveSeries::View LiveSeries::rangeOf(int64_t first, int64_t last) const
{
    View range;
    for (const auto &[key, slowest] : m_slowest) {
        if (key.second < first || key.second > last)
            continue;
        // From where every rank is in it, lest the step before have its point in view, to where every rank has ended
        // it.
        int64_t startNs = slowest->startNs, endNs = slowest->endNs;
        for (const auto &[rank, steps] : m_steps) {
            const auto step = steps.find(key);
            if (step == steps.end())
                continue;
            startNs = std::max(startNs, step->second.startNs);
            endNs = std::max(endNs, step->second.endNs);
        }
        const double start = m_time.secondsOf(key.first, startNs);
        const double end = m_time.secondsOf(key.first, endNs);
        range = range ? std::pair{std::min(range->first, start), std::max(range->second, end)} : std::pair{start, end};
    }
    return range;
}

LiveSeries::Points LiveSeries::pointsOfFirst() const
{
    Points points;
    if (m_steps.empty())
        return points;
    points.reserve(m_steps.begin()->second.size());
    for (const auto &[key, point] : m_steps.begin()->second)
        points.emplace_back(key, &point);
    return points;
}

/// Marks the lowest and the highest of a few neighbours, and what is far between anyway.
static void keepExtremes(const std::vector<std::pair<LiveSeries::StepKey, const StepPoint *>> &points, size_t from,
                         size_t to, double (*value)(const StepPoint &), std::vector<char> &kept)
{
    size_t lowest = from, highest = from;
    const auto valueAt = [&](size_t i) { return value(*points[i].second); };
    for (size_t i = from; i < to; ++i) {
        if (points[i].second->validationLoss)
            kept[i] = 1;
        if (valueAt(i) < valueAt(lowest) || std::isnan(valueAt(lowest)))
            lowest = i;
        if (valueAt(i) > valueAt(highest) || std::isnan(valueAt(highest)))
            highest = i;
    }
    kept[lowest] = kept[highest] = 1;
}

LiveSeries::Points LiveSeries::thinned(const Points &all, const View &view, double (*value)(const StepPoint &)) const
{
    size_t from = 0, to = all.size();
    if (view) { // with a neighbour on each side, so that lines go on to the edge
        const auto before = [this](double time) {
            return [this, time](const auto &entry) { return endOf(entry.first, *entry.second) < time; };
        };
        from = static_cast<size_t>(std::partition_point(all.begin(), all.end(), before(view->first)) - all.begin());
        to = static_cast<size_t>(std::partition_point(all.begin(), all.end(), before(view->second)) - all.begin());
        from -= from > 0;
        to = std::min(to + 1, all.size());
    }
    if (to - from <= kMaxPoints)
        return {all.begin() + static_cast<ptrdiff_t>(from), all.begin() + static_cast<ptrdiff_t>(to)};
    size_t size = 2; // a power of two, counted from the first step: what stands for a group stays the same for long
    while ((to - from) / size > kMaxPoints / 2)
        size *= 2;
    std::vector<char> kept(all.size());
    for (size_t i = from; i < to; i = (i / size + 1) * size)
        keepExtremes(all, i, std::min(to, (i / size + 1) * size), value, kept);
    kept[to - 1] = 1;
    Points points;
    for (size_t i = from; i < to; ++i) {
        if (kept[i])
            points.push_back(all[i]);
    }
    return points;
}

/// Where an attempt begins nothing was measured yet.
void LiveSeries::addGap(ChartData &data, double x)
{
    data.x.push_back(x);
    for (auto &column : data.columns)
        column.push_back(kNan);
}

ChartData LiveSeries::chartOf(const Points &points, size_t columns, void (*fill)(const StepPoint &, double *row),
                              bool lasting) const
{
    ChartData data;
    data.columns.resize(columns);
    std::vector<double> row(columns);
    for (size_t i = 0; i < points.size(); ++i) {
        const auto &[key, point] = points[i];
        const bool begins = i > 0 && points[i - 1].first.first != key.first;
        if (begins || (lasting && i == 0)) {
            addGap(data, lasting ? m_time.secondsOf(key.first, point->startNs) : m_time.beginOf(key.first));
            data.labels.push_back(begins ? QCoreApplication::translate("LiveSeries", "Attempt %1 begins").arg(key.first)
                                         : QString());
        }
        fill(*point, row.data());
        data.x.push_back(endOf(key, *point));
        for (size_t c = 0; c < columns; ++c)
            data.columns[c].push_back(row[c]);
        const bool ofOneRank = lasting && m_steps.size() > 1; // losses and norms are those of all ranks
        data.labels.push_back(labelOf(key) + (ofOneRank ? rankLabel(*point) : QString()));
    }
    return data;
}

ChartData LiveSeries::loss(const View &view) const
{
    // The loss is the global one: any rank's will do.
    const auto value = [](const StepPoint &point) { return orNan(point.loss); };
    return chartOf(thinned(pointsOfFirst(), view, value), 2, [](const StepPoint &point, double *row) {
        row[0] = orNan(point.loss);
        row[1] = orNan(point.validationLoss);
    });
}

ChartData LiveSeries::norm(const View &view) const
{
    const auto value = [](const StepPoint &point) { return orNan(point.gradientNorm); };
    return chartOf(thinned(pointsOfFirst(), view, value), 2, [](const StepPoint &point, double *row) {
        row[0] = orNan(point.gradientNorm);
        row[1] = orNan(point.learningRate);
    });
}

ChartData LiveSeries::stepTime(std::optional<int> rank, const View &view) const
{
    Points all;
    if (!rank)
        all.assign(m_slowest.begin(), m_slowest.end());
    else if (const auto steps = m_steps.find(*rank); steps != m_steps.end()) {
        for (const auto &[key, point] : steps->second)
            all.emplace_back(key, &point);
    }
    const auto value = [](const StepPoint &point) { return static_cast<double>(point.wallNs()); };
    const auto fill = [](const StepPoint &point, double *row) {
        for (size_t i = 0; i < kStepParts; ++i) {
            const double wall = i == 0 ? static_cast<double>(point.wallNs()) : kNan;
            row[i] = point.partNs ? static_cast<double>((*point.partNs)[i]) : wall;
        }
    };
    return chartOf(thinned(all, view, value), kStepParts, fill, true);
}

ChartData LiveSeries::memory(int rank) const
{
    ChartData data;
    data.columns.resize(kMemoryColumns);
    const auto found = m_samples.find(rank);
    if (found == m_samples.end())
        return data;
    const Samples &samples = found->second;
    std::optional<int64_t> before;
    for (size_t i = 0; i < samples.timeNs.size(); ++i) {
        const int64_t attempt = m_time.attemptAt(samples.timeNs[i]);
        if (before && *before != attempt)
            addGap(data, m_time.beginOf(attempt));
        before = attempt;
        data.x.push_back(m_time.secondsOf(attempt, samples.timeNs[i]));
        for (size_t c = 0; c < kMemoryColumns; ++c)
            data.columns[c].push_back(samples.columns[c][i]);
    }
    return data;
}

std::array<bool, kMemoryCategories + 1> LiveSeries::usedCategories() const
{
    std::array<bool, kMemoryCategories + 1> used{};
    for (const auto &[rank, samples] : m_samples) {
        for (size_t c = 0; c < used.size(); ++c) {
            const auto &column = samples.columns[c];
            used[c] = used[c] || std::any_of(column.begin(), column.end(), [](double bytes) { return bytes > 0; });
        }
    }
    return used;
}

std::array<bool, kStepParts> LiveSeries::usedParts(const ChartData &stepTime)
{
    std::array<bool, kStepParts> used{};
    for (size_t i = 0; i < kStepParts; ++i) {
        const auto &column = stepTime.columns[i];
        used[i] = std::any_of(column.begin(), column.end(), [](double ns) { return ns > 0; });
    }
    return used;
}

bool LiveSeries::hasReserve() const
{
    return std::any_of(m_samples.begin(), m_samples.end(), [](const auto &entry) {
        const Samples &samples = entry.second;
        return !std::equal(samples.allocated.begin(), samples.allocated.end(), samples.columns[kReserved].begin(),
                           std::greater_equal<>());
    });
}

std::optional<double> LiveSeries::exposedShare(StepKey key) const
{
    int64_t exposedNs = 0, wallNs = 0;
    for (const auto &[rank, steps] : m_steps) {
        const auto step = steps.find(key);
        if (step == steps.end() || !step->second.exposedNs)
            continue;
        exposedNs += *step->second.exposedNs;
        wallNs += step->second.wallNs();
    }
    return wallNs > 0 ? std::optional(static_cast<double>(exposedNs) / static_cast<double>(wallNs)) : std::nullopt;
}

std::optional<double> LiveSeries::highest(int rank, size_t column) const
{
    const auto samples = m_samples.find(rank);
    if (samples == m_samples.end())
        return std::nullopt;
    std::optional<double> most;
    for (const double bytes : samples->second.columns[column]) {
        if (!std::isnan(bytes))
            most = std::max(most.value_or(bytes), bytes);
    }
    return most;
}

} // namespace shardscope::ui
