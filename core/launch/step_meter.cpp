// SPDX-License-Identifier: Apache-2.0
#include "core/launch/step_meter.h"

#include <algorithm>
#include <cmath>

namespace shardscope::launch {

StepMeter::StepMeter(int ranks)
    : m_ranks(static_cast<size_t>(ranks))
{
}

bool StepMeter::add(int rank, const control::StepMessage &message, run::RunStatus &status)
{
    if (rank < 0 || static_cast<size_t>(rank) >= m_ranks)
        return false;
    Reports &reports = m_open[message.step];
    reports.resize(m_ranks);
    reports[static_cast<size_t>(rank)] = message;
    if (!std::all_of(reports.begin(), reports.end(), [](const auto &report) { return report.has_value(); }))
        return false;
    fill(reports, status);
    // Steps before it will not be complete any more: a rank's message was dropped.
    m_open.erase(m_open.begin(), m_open.upper_bound(message.step));
    return true;
}

void StepMeter::fill(const Reports &reports, run::RunStatus &status)
{
    int64_t tokens = 0;
    int64_t slowestNs = 0;
    std::vector<control::StepFigures> figures;
    for (const auto &report : reports) {
        tokens += report->tokens;
        slowestNs = std::max(slowestNs, report->stepNs);
        figures.push_back(report->figures);
        figures.back().ofNs = report->figures.ofNs.value_or(report->stepNs);
    }
    const control::StepMessage &first = *reports.front();
    status.step = first.step;
    status.steps = first.steps;
    status.loss = first.loss;
    status.take(first.state, first.lossScale);
    if (first.validationLoss)
        status.validationLoss = first.validationLoss;
    status.lossTail.push_back(first.loss.value_or(std::nan("")));
    if (status.lossTail.size() > run::RunStatus::kLossTail)
        status.lossTail.erase(status.lossTail.begin());
    status.stepNs = slowestNs;
    status.tokensPerSecond.reset();
    if (slowestNs > 0)
        status.tokensPerSecond = static_cast<double>(tokens) * 1e9 / static_cast<double>(slowestNs);
    fill(figures, status);
}

void StepMeter::addLast(int rank, const control::StepFigures &last, run::RunStatus &status)
{
    m_last[rank] = last;
    if (m_last.size() != m_ranks)
        return;
    std::vector<control::StepFigures> figures;
    for (const auto &[each, known] : m_last)
        figures.push_back(known);
    fill(figures, status);
}

void StepMeter::fill(const std::vector<control::StepFigures> &figures, run::RunStatus &status)
{
    int64_t allNs = 0;
    int64_t exposedNs = 0;
    bool exposedMeasured = true;
    status.peakAllocatedBytes.reset();
    status.exposedCommunicationShare.reset();
    for (const control::StepFigures &each : figures) {
        if (each.peakAllocatedBytes)
            status.peakAllocatedBytes = std::max(status.peakAllocatedBytes.value_or(0), *each.peakAllocatedBytes);
        allNs += each.ofNs.value_or(0);
        exposedNs += each.exposedCommunicationNs.value_or(0);
        exposedMeasured = exposedMeasured && each.exposedCommunicationNs;
    }
    if (exposedMeasured && allNs > 0)
        status.exposedCommunicationShare = static_cast<double>(exposedNs) / static_cast<double>(allNs);
}

} // namespace shardscope::launch
