// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/memory/memory_page.h"

#include "profiler/store/recording.h"
#include "ui/common/chart.h"
#include "ui/common/recording_reader.h"
#include "ui/common/selection.h"
#include "ui/common/text.h"
#include "ui/memory/peak_table_model.h"
#include "ui/memory/readout_model.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QHeaderView>
#include <QSpinBox>
#include <QTableView>
#include <fmt/format.h>

// The widgets and the chart's columns are made in memory_page_build.cpp.
namespace shardscope::ui::memory {

namespace {

constexpr int kLiveReadMs = 2000;

} // namespace

MemoryPage::MemoryPage(const Context &context, QWidget *parent)
    : Page(context, parent)
    , m_load(new QAction(tr("Load"), this))
{
    m_liveTimer.setSingleShot(true);
    m_liveTimer.setInterval(kLiveReadMs);
    connect(&m_liveTimer, &QTimer::timeout, this, &MemoryPage::read);
    build();
    connect(&selection(), &Selection::changed, this, &MemoryPage::onSelection);
    connect(this, &Page::cancelled, this, [this] {
        reader().cancel(this, "memory");
        m_reading = false;
        m_cancelled = true;
        showEmpty(tr("Not loaded"), tr("Loading was cancelled."), m_load);
    });
    connect(m_load, &QAction::triggered, this, &MemoryPage::recordingOpened);
    if (reader().isOpen())
        recordingOpened();
}

bool MemoryPage::isSettled() const
{
    return Page::isSettled() && !m_reading;
}

void MemoryPage::showEvent(QShowEvent *event)
{
    Page::showEvent(event);
    if (m_dirty)
        read();
}

void MemoryPage::recordingOpened()
{
    m_request = {};
    m_snapshot.reset();
    m_view.reset();
    m_freshTable = true;
    m_reading = m_readAgain = m_cancelled = false;
    showLoading(tr("Reading the memory samples…"));
    read();
}

void MemoryPage::recordingClosed()
{
    m_liveTimer.stop();
    m_reading = m_readAgain = m_dirty = m_cancelled = false;
    m_snapshot.reset();
    m_peakModel->setSnapshot(nullptr);
    m_readoutModel->setSnapshot(nullptr);
}

void MemoryPage::recordingChanged(const RecordingChange &)
{
    if (!m_liveTimer.isActive())
        m_liveTimer.start();
}

void MemoryPage::read()
{
    if (!reader().isOpen())
        return;
    m_dirty = !isVisible(); // there is one reader thread for all pages: none reads while nobody looks
    if (m_dirty || m_cancelled)
        return;
    if (m_reading) {
        m_readAgain = true;
        return;
    }
    m_reading = true;
    reader().request<MemorySnapshot>(
        this, "memory",
        [request = m_request, before = m_snapshot](store::Recording &recording, const store::CancelToken &cancel) {
            return readMemory(recording, request, before, cancel);
        },
        [this](Result<std::shared_ptr<const MemorySnapshot>> result) {
            m_reading = false;
            if (!result)
                showError(tr("The memory samples can't be read"), QString::fromStdString(result.error().text));
            else
                onRead(*result);
            if (std::exchange(m_readAgain, false))
                read();
        });
}

void MemoryPage::onRead(std::shared_ptr<const MemorySnapshot> snapshot)
{
    m_snapshot = std::move(snapshot);
    fillChoices();
    m_peakModel->setSnapshot(m_snapshot);
    m_readoutModel->setSnapshot(m_snapshot);
    if (m_snapshot->samples.size() == 0) {
        showEmpty(tr("No memory samples"),
                  m_snapshot->ranks.empty()
                      ? tr("No rank has begun to record.")
                      : tr("%1 has recorded no memory sample yet. With record.level = \"off\" it will not.")
                            .arg(rankText(m_snapshot->process)));
        return;
    }
    fillChart();
    updateTitle();
    const bool first = face() != Face::Content;
    showContent();
    if (first)
        onSelection();
}

QString MemoryPage::rankText(store::Index process) const
{
    const store::ProcessInfo &info = m_snapshot->catalog->processes[static_cast<size_t>(process)];
    const QString rank = info.rank ? tr("Rank %1").arg(*info.rank) : tr("Process %1").arg(info.pid);
    return m_snapshot->catalog->attempts.size() > 1 ? tr("Attempt %1, %2").arg(info.attempt).arg(rank.toLower()) : rank;
}

void MemoryPage::onSelection()
{
    if (!m_snapshot || face() != Face::Content)
        return;
    const auto seconds = [](int64_t ns) { return static_cast<double>(ns) * 1e-9; };
    if (const auto &range = selection().range())
        m_chart->setBrush(std::pair(seconds(range->startNs), seconds(range->endNs)));
    else
        m_chart->setBrush(std::nullopt);
    showPeakStep(selection().step());
    if (selection().unit())
        find(*selection().unit());
}

void MemoryPage::showPeakStep(std::optional<int64_t> step)
{
    // A step without a sampled peak here (another rank's, or thinned out) shows the highest one instead.
    if (step && !std::binary_search(m_snapshot->steps.begin(), m_snapshot->steps.end(), *step))
        step.reset();
    if (step == m_request.step)
        return;
    m_request.step = step;
    read();
}

bool MemoryPage::find(const QString &text)
{
    for (int row = 0; row < m_peakModel->rowCount(); ++row) {
        if (m_peakModel->unitAt(row).contains(text, Qt::CaseInsensitive)) {
            m_peakTable->selectRow(row);
            m_peakTable->scrollTo(m_peakModel->index(row, 0));
            return true;
        }
    }
    return false;
}

bool MemoryPage::showSteps(int64_t first, int64_t last)
{
    TimeRange range{INT64_MAX, INT64_MIN};
    std::optional<size_t> highest;
    for (size_t i = 0; m_snapshot && i < m_snapshot->samples.size(); ++i) {
        const int64_t step = m_snapshot->samples.step[i];
        if (step < 0 || step < first || step > last)
            continue;
        range.startNs = std::min(range.startNs, m_snapshot->samples.timeNs[i]);
        range.endNs = std::max(range.endNs, m_snapshot->samples.timeNs[i]);
        const auto &allocated = m_snapshot->samples.allocatedBytes;
        if (m_snapshot->samples.isStepPeak[i] && (!highest || allocated[i] > allocated[*highest]))
            highest = i;
    }
    if (range.isEmpty())
        return false;
    m_view = range;
    fillChart();
    if (highest) // the table below is of what is seen above
        showPeakStep(m_snapshot->samples.step[*highest]);
    return true;
}

QString MemoryPage::peakSql() const
{
    if (!m_snapshot || !m_snapshot->peak)
        return {};
    const store::ProcessInfo &info = m_snapshot->catalog->processes[static_cast<size_t>(m_snapshot->process)];
    return QString::fromStdString(
        fmt::format("SELECT unit.name AS unit, memory_peak.category, sum(memory_peak.bytes) AS bytes\n"
                    "FROM memory_peak\n"
                    "JOIN memory ON memory.memory_id = memory_peak.memory_id\n"
                    "JOIN process ON process.process_id = memory.process_id\n"
                    "JOIN step ON step.step_id = memory.step_id\n"
                    "LEFT JOIN unit ON unit.unit_id = memory_peak.unit_id\n"
                    "WHERE process.attempt = {} AND process.rank = {} AND step.number = {}\n"
                    "GROUP BY 1, 2 ORDER BY 3 DESC",
                    info.attempt, info.rank.value_or(0), m_snapshot->peak->step));
}

QString MemoryPage::samplesSql() const
{
    const store::ProcessInfo &info = m_snapshot->catalog->processes[static_cast<size_t>(m_snapshot->process)];
    return QString::fromStdString(
        fmt::format("SELECT memory.* FROM memory JOIN process ON process.process_id = memory.process_id\n"
                    "WHERE process.attempt = {} AND process.rank = {} AND memory.place = '{}'\n"
                    "ORDER BY memory.time_ns",
                    info.attempt, info.rank.value_or(0), m_snapshot->samples.place));
}

} // namespace shardscope::ui::memory
