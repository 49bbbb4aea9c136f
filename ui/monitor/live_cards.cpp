// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/monitor/live_cards.h"

#include "ui/common/flow_layout.h"
#include "ui/common/text.h"
#include "ui/monitor/stat_card.h"

#include <algorithm>
#include <cmath>

namespace shardscope::ui {

static const QString kUnknown = QStringLiteral("—");

LiveCards::LiveCards(QWidget *parent)
    : QWidget(parent)
    , m_loss(new StatCard(tr("Loss"),
                          tr("Of the last step's whole global batch, nats a token; below, what it was ten steps ago"),
                          this))
    , m_speed(new StatCard(tr("Tokens/s"), tr("Of all ranks together"), this))
    , m_stepTime(new StatCard(tr("Step time"), tr("Of the slowest rank"), this))
    , m_mfu(new StatCard(tr("MFU"), tr("Model FLOP/s ÷ what the devices can do; not known on a CPU"), this))
    , m_memory(new StatCard(tr("Peak memory"), tr("Allocated at the peak, on the rank that holds most"), this))
    , m_exposed(new StatCard(tr("Exposed"),
                             tr("Communication that no computation hides ÷ the step's time, over all ranks"), this))
{
    auto *layout = new FlowLayout(8, true);
    for (StatCard *card : {m_loss, m_speed, m_stepTime, m_mfu, m_memory, m_exposed})
        layout->addWidget(card);
    setLayout(layout);
    QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Minimum);
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
}

void LiveCards::refresh(const run::RunStatus &status, const LiveSeries &series, const store::Catalog *catalog)
{
    const auto last = series.lastStep();
    const StepPoint *step = last ? series.step(*last, std::nullopt) : nullptr;
    showLoss(status, series);
    showSpeed(status, step);
    showMemory(status, step, catalog);
    // Rank 0 knows its own figure alone; the recording has the others'.
    std::optional<double> share = status.exposedCommunicationShare;
    if (const auto recorded = last ? series.exposedShare(*last) : std::nullopt;
        recorded && (!share || status.ofRankZero()))
        share = recorded;
    m_exposed->setValue(shareText(share), share && *share > 0.25 ? tr("over 25 %") : QString());
    std::optional<double> mfu;
    if (catalog && status.tokensPerSecond)
        mfu = modelFlopsUtilization(*status.tokensPerSecond, *catalog);
    m_mfu->setValue(shareText(mfu), mfu ? QString() : tr("unknown"));
}

void LiveCards::showLoss(const run::RunStatus &status, const LiveSeries &series)
{
    std::optional<double> loss = status.loss;
    const ChartData recorded = loss ? ChartData() : series.loss();
    if (!loss && !recorded.x.empty()) {
        const auto &column = recorded.columns[0];
        const auto known =
            std::find_if(column.rbegin(), column.rend(), [](double value) { return !std::isnan(value); });
        if (known != column.rend())
            loss = *known;
    }
    QString detail;
    if (status.validationLoss)
        detail = tr("validation %1").arg(lossText(status.validationLoss));
    else if (status.lossTail.size() > 10)
        detail = tr("was %1").arg(lossText(status.lossTail[status.lossTail.size() - 11]));
    if (status.skippedSteps > 0)
        detail = tr("%n step(s) skipped", nullptr, static_cast<int>(status.skippedSteps));
    m_loss->setToolTip(status.lossScale ? tr("Loss scale of fp16: %1").arg(*status.lossScale)
                                        : tr("Of the last step; “was”: ten steps before it"));
    m_loss->setValue(lossText(loss), detail);
}

void LiveCards::showSpeed(const run::RunStatus &status, const StepPoint *step)
{
    m_speed->setValue(status.tokensPerSecond ? countText(*status.tokensPerSecond) : kUnknown, tr("all ranks"));
    std::optional<int64_t> wall = status.stepNs;
    if (!wall && step)
        wall = step->wallNs();
    QString which;
    if (status.step)
        which = tr("step %1").arg(*status.step);
    if (status.stepState == StepState::Skipped)
        which += tr(", skipped");
    m_stepTime->setValue(durationText(wall), which);
}

void LiveCards::showMemory(const run::RunStatus &status, const StepPoint *step, const store::Catalog *catalog)
{
    std::optional<int64_t> peak = status.peakAllocatedBytes;
    if (!peak && step)
        peak = step->peakBytes;
    QString detail;
    if (catalog) {
        for (const store::DeviceInfo &device : catalog->devices) {
            if (device.memoryBytes > 0) {
                detail = tr("of %1").arg(bytesText(device.memoryBytes));
                break;
            }
        }
    }
    m_memory->setValue(bytesText(peak), detail);
}

std::optional<double> modelFlopsUtilization(double tokensPerSecond, const store::Catalog &catalog)
{
    if (catalog.attempts.empty())
        return std::nullopt;
    double peak = 0;
    std::optional<double> perToken;
    for (const store::Index rank : catalog.attempts.back().ranks) {
        if (rank == store::kNone)
            return std::nullopt;
        perToken = catalog.processes[static_cast<size_t>(rank)].modelFlopsPerToken;
        const auto device = std::find_if(catalog.devices.begin(), catalog.devices.end(), [rank](const auto &one) {
            return one.process == rank && one.peakFlops.has_value();
        });
        if (!perToken || device == catalog.devices.end())
            return std::nullopt;
        peak += *device->peakFlops;
    }
    return peak > 0 ? std::optional(tokensPerSecond * *perToken / peak) : std::nullopt;
}

} // namespace shardscope::ui
