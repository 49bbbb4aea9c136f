// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/monitor/run_status_line.h"

#include "ui/common/colors.h"
#include "ui/common/text.h"
#include "ui/monitor/run_state.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QMouseEvent>

namespace shardscope::ui {

static constexpr int kMessageMs = 8000;
static constexpr size_t kMaxDots = 16;

RunStatusLine::RunStatusLine(QWidget *parent)
    : QWidget(parent)
    , m_ranks(new QLabel(this))
    , m_progress(new QLabel(this))
    , m_recorded(new QLabel(this))
    , m_memory(new QLabel(this))
    , m_message(new QLabel(this))
{
    m_ranks->setAccessibleName(tr("Ranks"));
    m_progress->setAccessibleName(tr("Progress"));
    m_recorded->setAccessibleName(tr("Recorded"));
    m_memory->setAccessibleName(tr("Memory"));
    m_message->setAccessibleName(tr("Message"));
    m_message->setObjectName(QStringLiteral("message"));
    m_message->setTextFormat(Qt::PlainText);
    m_message->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_message->installEventFilter(this);
    auto *layout = new QHBoxLayout(this);
    layout->setContentsMargins(8, 2, 8, 2);
    layout->setSpacing(16);
    for (QLabel *label : {m_ranks, m_progress})
        layout->addWidget(label);
    layout->addWidget(m_message, 1);
    for (QLabel *label : {m_recorded, m_memory})
        layout->addWidget(label);
    m_expiry.setSingleShot(true);
    m_expiry.setInterval(kMessageMs);
    connect(&m_expiry, &QTimer::timeout, m_message, &QLabel::clear);
}

void RunStatusLine::showMessage(const QString &text, bool bad)
{
    m_message->setText(text.simplified());
    m_message->setToolTip(bad ? text + tr("\n(click to hide)") : text);
    m_message->setForegroundRole(bad ? QPalette::BrightText : QPalette::WindowText);
    if (bad)
        m_expiry.stop();
    else
        m_expiry.start();
}

bool RunStatusLine::eventFilter(QObject *watched, QEvent *event)
{
    if (event->type() == QEvent::MouseButtonPress)
        m_message->clear();
    return QWidget::eventFilter(watched, event);
}

QString RunStatusLine::progressText(const run::RunStatus &status)
{
    QStringList parts;
    if (status.step && status.steps)
        parts << tr("step %1/%2").arg(*status.step).arg(*status.steps);
    else
        parts << stateName(status);
    if (status.live() && status.tokensPerSecond)
        parts << tr("%1 tok/s").arg(countText(*status.tokensPerSecond));
    if (status.state == RunState::Running && status.step && status.steps && status.stepNs)
        parts << tr("ETA %1").arg(durationText((*status.steps - *status.step) * *status.stepNs));
    else if (status.step)
        parts << stateName(status);
    return parts.join(QStringLiteral(" · "));
}

QString RunStatusLine::recordedText(const store::Catalog &catalog)
{
    int64_t spans = 0;
    int64_t dropped = 0;
    for (const store::ProcessInfo &process : catalog.processes) {
        spans += process.spansWritten;
        dropped += process.droppedRecords;
    }
    return tr("recorded %1 events, %2 dropped").arg(countText(static_cast<double>(spans))).arg(dropped);
}

QString RunStatusLine::memoryText(const run::RunStatus &status, const store::Catalog *catalog)
{
    if (!status.peakAllocatedBytes)
        return {};
    int64_t total = 0;
    if (catalog) {
        for (const store::DeviceInfo &device : catalog->devices)
            total = std::max(total, device.memoryBytes);
    }
    return total > 0 ? tr("peak %1 of %2").arg(bytesText(*status.peakAllocatedBytes), bytesText(total))
                     : tr("peak %1").arg(bytesText(*status.peakAllocatedBytes));
}

void RunStatusLine::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        showRanks(); // the dots' colours stand in its text
}

void RunStatusLine::showRanks()
{
    const Colors &colors = Colors::of(palette());
    QString dots;
    QStringList tips;
    for (size_t i = 0; i < m_rankStates.size(); ++i) {
        const run::RankStatus &rank = m_rankStates[i];
        tips << tr("rank %1: %2, pid %3").arg(rank.rank).arg(nameOf(rank.state)).arg(rank.pid);
        if (i < kMaxDots)
            dots += QStringLiteral(" %1 <span style='color:%2'>●</span>")
                        .arg(rank.rank)
                        .arg(colors.state(rank.state).name());
    }
    if (m_rankStates.size() > kMaxDots)
        dots += QStringLiteral(" …");
    m_ranks->setText(dots.isEmpty() ? QString() : tr("rank") + dots);
    m_ranks->setToolTip(tips.join(u'\n'));
}

void RunStatusLine::setRun(const run::RunStatus *status, const store::Catalog *catalog)
{
    m_rankStates = status ? status->ranks : std::vector<run::RankStatus>();
    showRanks();
    m_progress->setText(status ? progressText(*status) : QString());
    m_recorded->setText(catalog ? recordedText(*catalog) : QString());
    m_memory->setText(status ? memoryText(*status, catalog) : QString());
}

} // namespace shardscope::ui
