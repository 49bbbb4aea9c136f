// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/monitor/live_page.h"

#include "ui/common/chart_ticker.h"
#include "ui/common/elided_label.h"
#include "ui/common/recording_reader.h"
#include "ui/common/selection.h"
#include "ui/common/text.h"
#include "ui/monitor/events_model.h"
#include "ui/monitor/failure_card.h"
#include "ui/monitor/live_cards.h"
#include "ui/monitor/live_charts.h"
#include "ui/monitor/run_commands.h"
#include "ui/monitor/run_header.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QScrollArea>
#include <QSplitter>
#include <QTableView>

namespace shardscope::ui {

static const QByteArray kChannel = QByteArrayLiteral("live");

LivePage::LivePage(const Context &context, RunCommands &commands, QWidget *parent)
    : Page(context, parent)
    , m_events(new EventsModel(this))
{
    setContent(buildContent(commands));
    connect(m_rank, &QComboBox::currentIndexChanged, this, &LivePage::refreshCharts);
    connect(m_charts, &LiveCharts::viewChanged, this, &LivePage::refreshCharts);
    connect(m_charts, &LiveCharts::picked, this, &LivePage::pickTime);
    connect(m_failure, &FailureCard::showLogs, this, &LivePage::showLogs);
    connect(m_eventsView, &QTableView::activated, this, [this](const QModelIndex &index) { followEvent(index.row()); });
    connect(m_eventsView, &QTableView::clicked, this, [this](const QModelIndex &index) { followEvent(index.row()); });
}

QWidget *LivePage::buildContent(RunCommands &commands)
{
    auto *upper = new QWidget;
    m_header = new RunHeader(commands, upper);
    m_failure = new FailureCard(upper);
    m_problem = new QLabel(upper);
    m_problem->setAccessibleName(tr("Problem with the recording"));
    m_problem->setTextFormat(Qt::PlainText);
    m_problem->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    m_problem->setWordWrap(true);
    m_problem->hide();
    m_cards = new LiveCards(upper);
    m_charts = new LiveCharts(selection(), upper);
    m_rank = new QComboBox(upper);
    m_rank->addItem(tr("All ranks"));
    m_rank->setToolTip(
        tr("All ranks: a memory chart each, and the step time of the one that the others wait for in that step"));
    auto *rankLabel = new QLabel(tr("&Show:"), upper);
    rankLabel->setBuddy(m_rank);
    auto *choice = new QHBoxLayout;
    choice->setSpacing(8);
    choice->addWidget(rankLabel);
    choice->addWidget(m_rank);
    auto *hint = new ElidedLabel(tr("Drag selects · Ctrl+wheel zooms · Shift-drag moves · double click fits"), upper);
    hint->setForegroundRole(QPalette::PlaceholderText);
    hint->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    choice->addWidget(hint, 1);

    auto *layout = new QVBoxLayout(upper);
    layout->setContentsMargins(8, 16, 8, 8);
    layout->setSpacing(8);
    layout->addWidget(m_header);
    layout->addWidget(m_failure);
    layout->addWidget(m_problem);
    layout->addWidget(m_cards);
    layout->addLayout(choice);
    layout->addWidget(m_charts);
    layout->addStretch(1);
    auto *scroll = new QScrollArea;
    scroll->setWidget(upper);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);

    auto *splitter = new QSplitter(Qt::Vertical);
    splitter->addWidget(scroll);
    splitter->addWidget(buildEvents());
    splitter->setStretchFactor(0, 1);
    splitter->setCollapsible(0, false);
    splitter->setSizes({600, 88});
    m_sides = new QSplitter(Qt::Horizontal);
    m_sides->addWidget(splitter);
    m_sides->setStretchFactor(0, 1);
    m_sides->setCollapsible(0, false);
    return m_sides;
}

void LivePage::setSide(QWidget *side, const QList<QAction *> &actions)
{
    m_sides->addWidget(side);
    m_sides->setStretchFactor(1, 0);
    m_sideActions = actions;
}

QWidget *LivePage::buildEvents()
{
    m_eventsView = new QTableView;
    m_eventsView->setModel(m_events);
    m_eventsView->setAccessibleName(tr("Events of the run"));
    m_eventsView->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_eventsView->setSelectionMode(QAbstractItemView::SingleSelection);
    m_eventsView->setFrameShape(QFrame::NoFrame);
    m_eventsView->setShowGrid(false);
    m_eventsView->verticalHeader()->hide();
    m_eventsView->verticalHeader()->setDefaultSectionSize(m_eventsView->fontMetrics().height() + 6);
    m_eventsView->horizontalHeader()->setStretchLastSection(true);
    m_eventsView->setMinimumHeight(64);
    return m_eventsView;
}

void LivePage::setRun(const run::RunSummary *run)
{
    const bool another = !run || !m_run || run->folder.root() != m_run->folder.root();
    m_run = run ? std::optional(*run) : std::nullopt;
    Q_EMIT runSet(run);
    showProblems();
    if (!run)
        return; // the reader closes too, and says so
    m_header->setRun(*run);
    m_failure->setRun(*run);
    if (another || face() == Face::Empty)
        showContent();
    refreshCards();
}

void LivePage::recordingOpened()
{
    showContent();
    load();
}

void LivePage::onWaiting()
{
    if (m_run)
        showContent(); // state and commands are there before the first record is
    else
        Page::onWaiting();
}

void LivePage::onFailed(const QString &message)
{
    setProblem(message);
    if (m_run)
        showContent(); // what became of the run, its log and its commands need no recording
    else
        Page::onFailed(message);
}

void LivePage::setProblem(const QString &text)
{
    m_unreadable = text;
    showProblems();
}

void LivePage::showProblems()
{
    QStringList problems;
    if (!m_unreadable.isEmpty())
        problems << tr("The recording can't be read: %1").arg(m_unreadable);
    if (m_run && !m_run->status.recordingProblem.empty())
        problems << QString::fromStdString(m_run->status.recordingProblem);
    m_problem->setText(problems.join(u'\n'));
    m_problem->setVisible(!problems.isEmpty());
}

void LivePage::recordingClosed()
{
    setProblem({});
    m_series.clear();
    m_position = {};
    m_events->clear();
    m_again = false;
    m_loading = false;
    refreshRanks();
    refreshCharts();
    refreshCards();
}

void LivePage::recordingChanged(const RecordingChange &)
{
    if (m_loading)
        m_again = true; // a newer request would drop the older, and a slow disk would never show anything
    else
        load();
}

void LivePage::load()
{
    m_loading = true;
    const LivePosition position = m_position;
    reader().request<LiveDelta>(
        this, kChannel,
        [position](store::Recording &recording, const store::CancelToken &cancel) {
            return loadLive(recording, position, cancel);
        },
        [this](const Result<RecordingReader::Snapshot<LiveDelta>> &delta) {
            m_loading = false;
            if (delta)
                take(**delta);
            else
                onFailed(QString::fromStdString(delta.error().text));
            if (std::exchange(m_again, false))
                load();
        });
}

void LivePage::take(const LiveDelta &delta)
{
    setProblem({});
    showContent();
    m_position = delta.position;
    if (const store::ConfigInfo *inForce = delta.catalog->lastConfig())
        m_header->setInForce(delta.catalog->attempts.back().attempt, inForce->fullJson);
    m_series.add(delta);
    m_events->add(delta.events, *delta.catalog, m_series.time());
    for (int column = 0; column < EventsModel::Text && !delta.events.empty(); ++column) // the last one has the rest
        m_eventsView->resizeColumnToContents(column);
    refreshRanks();
    refreshCharts();
    refreshCards();
}

void LivePage::refreshRanks()
{
    const std::vector<int> ranks = m_series.ranks();
    if (m_rank->count() == static_cast<int>(ranks.size()) + 1)
        return;
    const QSignalBlocker quiet(m_rank);
    while (m_rank->count() > 1)
        m_rank->removeItem(1);
    for (const int rank : ranks)
        m_rank->addItem(tr("Rank %1").arg(rank), rank);
}

std::optional<int> LivePage::chosenRank() const
{
    const QVariant rank = m_rank->currentData();
    return rank.isValid() ? std::optional(rank.toInt()) : std::nullopt;
}

void LivePage::showEvent(QShowEvent *event)
{
    Page::showEvent(event);
    if (m_stale)
        refreshCharts();
}

void LivePage::refreshCharts()
{
    m_stale = !isVisible();
    if (m_stale)
        return;
    m_charts->refresh(m_series, chosenRank());
    m_charts->setEvents(m_series.events());
}

void LivePage::refreshCards()
{
    m_cards->refresh(m_run ? m_run->status : run::RunStatus(), m_series, reader().catalog().get());
}

void LivePage::pickTime(double seconds)
{
    const auto key = m_series.stepAt(seconds);
    if (!key)
        return;
    selection().setStep(key->second);
    inspectStep(*key);
}

bool LivePage::showSteps(int64_t first, int64_t last)
{
    const LiveSeries::View range = m_series.rangeOf(first, last);
    if (range)
        m_charts->showRange(range->first, range->second);
    return range.has_value();
}

void LivePage::inspectStep(LiveSeries::StepKey key)
{
    const StepPoint *step = m_series.step(key, chosenRank());
    if (!step)
        return;
    InspectorContent content;
    content.title = tr("Step %1").arg(key.second);
    content.facts = {
        {tr("Attempt"), QString::number(key.first)},
        {tr("Rank"), chosenRank() || m_series.ranks().size() < 2
                         ? QString::number(step->rank)
                         : tr("%1, which comes last to collectives").arg(step->rank)},
        {tr("Loss"), lossText(step->loss)},
        {tr("Gradient norm"), lossText(step->gradientNorm)},
        {tr("Learning rate"), step->learningRate ? QString::number(*step->learningRate, 'g', 4) : QStringLiteral("—")},
        {tr("Time"), durationText(step->wallNs())},
        {tr("Exposed communication"), durationText(step->exposedNs)},
        {tr("Peak memory"), bytesText(step->peakBytes)}};
    content.sql = QStringLiteral("SELECT * FROM step WHERE number = %1").arg(key.second);
    Q_EMIT inspect(content);
}

void LivePage::followEvent(int row)
{
    const store::EventInfo &event = m_events->eventAt(row);
    if (event.step)
        selection().setStep(*event.step);
    InspectorContent content;
    content.title = EventsModel::nameOf(event.kind);
    content.facts = {{tr("What"), QString::fromStdString(event.text)},
                     {tr("Running time"), axisText(ChartUnit::Seconds, m_series.time().secondsAt(event.timeNs))},
                     {tr("Step"), event.step ? QString::number(*event.step) : QStringLiteral("—")}};
    if (!event.detailJson.empty())
        content.facts << std::pair{tr("Details"), QString::fromStdString(event.detailJson)};
    content.sql = QStringLiteral("SELECT * FROM event ORDER BY time_ns");
    Q_EMIT inspect(content);
}

} // namespace shardscope::ui
