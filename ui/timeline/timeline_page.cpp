// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/timeline_page.h"

#include "profiler/store/recording.h"
#include "ui/common/colors.h"
#include "ui/common/recording_reader.h"
#include "ui/common/selection.h"
#include "ui/common/text.h"
#include "ui/timeline/lane_accessibility.h"
#include "ui/timeline/legend.h"
#include "ui/timeline/range_panel.h"
#include "ui/timeline/search_bar.h"
#include "ui/timeline/snapshot_builder.h"
#include "ui/timeline/span_details.h"
#include "ui/timeline/timeline_actions.h"
#include "ui/timeline/timeline_view.h"

#include <QAction>
#include <QApplication>
#include <QPointer>
#include <QSplitter>
#include <QToolBar>
#include <QVBoxLayout>

namespace shardscope::ui::timeline {

TimelinePage::TimelinePage(const Context &context, QWidget *parent)
    : Page(context, parent)
    , m_state(new TimelineState(this))
    , m_load(new QAction(tr("Load"), this))
{
    installLaneAccessibility();
    build();
    connectState();
    if (reader().isOpen())
        recordingOpened();
}

TimelinePage::~TimelinePage() = default;

QList<QAction *> TimelinePage::pageActions() const
{
    return m_actions->all();
}

void TimelinePage::changeEvent(QEvent *event)
{
    if (event->type() == QEvent::PaletteChange && m_actions)
        m_actions->updateIcons(palette());
    Page::changeEvent(event);
}

void TimelinePage::build()
{
    auto *content = new QWidget(this);
    m_view = new TimelineView(*m_state, content);
    m_actions = new TimelineActions(m_view);
    m_view->connectActions(*m_actions);
    m_search = new SearchBar(content);
    m_search->setMaximumWidth(480);
    m_panel = new RangePanel(content);
    m_panel->hide();

    auto *bar = new QToolBar(content);
    bar->setIconSize({16, 16});
    for (QAction *action : {m_actions->fit, m_actions->zoomOut, m_actions->zoomIn, m_actions->earlier, m_actions->later,
                            m_actions->mark, m_actions->clear, m_actions->follow})
        bar->addAction(action);
    // The search field stands beside the toolbar, not in it: there the actions' keys would hold for it too.
    auto *top = new QHBoxLayout;
    top->setContentsMargins(0, 0, 8, 0);
    top->addWidget(bar);
    top->addWidget(m_search, 1);
    top->addStretch();

    auto *legend = new Legend(*m_state, content);
    auto *splitter = new QSplitter(Qt::Vertical, content);
    splitter->addWidget(m_view);
    splitter->addWidget(m_panel);
    splitter->setChildrenCollapsible(false);
    splitter->setStretchFactor(0, 3);
    splitter->setStretchFactor(1, 1);
    splitter->setSizes({520, 220});

    auto *layout = new QVBoxLayout(content);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(top);
    layout->addWidget(legend);
    layout->addWidget(splitter, 1);
    setContent(content);
    setFocusProxy(m_view);
}

void TimelinePage::connectState()
{
    connect(m_state, &TimelineState::spanPicked, this, &TimelinePage::onSpanPicked);
    connect(m_state, &TimelineState::brushChanged, this, [this] { selection().setRange(m_state->brush()); });
    connect(&selection(), &Selection::rangeChanged, this, &TimelinePage::onSelectionChanged);
    connect(&selection(), &Selection::ranksChanged, this, &TimelinePage::summarizeRange);
    connect(m_search, &SearchBar::textChanged, this, &TimelinePage::startSearch);
    connect(m_search, &SearchBar::next, this, [this] { goToHit(true); });
    connect(m_search, &SearchBar::previous, this, [this] { goToHit(false); });
    connect(m_search, &SearchBar::left, this, [this] { m_view->lanes().setFocus(Qt::OtherFocusReason); });
    connect(m_actions->search, &QAction::triggered, m_search, &SearchBar::start);
    connect(m_actions->nextHit, &QAction::triggered, this, [this] { goToHit(true); });
    connect(m_actions->previousHit, &QAction::triggered, this, [this] { goToHit(false); });
    connect(m_actions->clear, &QAction::triggered, this, &TimelinePage::clearAll);
    connect(m_panel, &RangePanel::closed, this, [this] { m_state->setBrush(std::nullopt); });
    connect(m_panel, &RangePanel::searchRequested, m_search, &SearchBar::setText);
    connect(&m_view->ruler(), &TimelineRuler::stepClicked, this, [this](qint64 number, const TimeRange &range) {
        selection().setStep(number);
        m_state->setBrush(range);
    });
    connect(this, &Page::cancelled, this, [this] {
        reader().cancel(this, "timeline");
        m_reading = false;
        m_cancelled = true;
        showEmpty(tr("Not loaded"), tr("Loading was cancelled."), m_load);
    });
    connect(m_load, &QAction::triggered, this, &TimelinePage::recordingOpened);
}

void TimelinePage::showEvent(QShowEvent *event)
{
    Page::showEvent(event);
    if (m_dirty)
        read();
}

void TimelinePage::recordingOpened()
{
    m_state->clear();
    m_reading = m_readAgain = m_cancelled = false;
    showLoading(tr("Reading the spans of all ranks…"));
    read();
}

void TimelinePage::recordingClosed()
{
    m_reading = m_readAgain = m_dirty = m_cancelled = false;
    m_state->clear();
    m_panel->hide();
}

void TimelinePage::recordingChanged(const RecordingChange &)
{
    read();
}

/// One read at a time: a newer request would cancel the older, and a fast writer would starve the page. None while
/// nobody looks: there is one reader thread for all pages.
void TimelinePage::read()
{
    m_dirty = !isVisible();
    if (m_dirty || m_cancelled)
        return;
    if (m_reading) {
        m_readAgain = true;
        return;
    }
    m_reading = true;
    QPointer<TimelinePage> page(this);
    const Progress progress = [page](double share) {
        // From the reader's thread: only posts.
        QMetaObject::invokeMethod(
            qApp,
            [page, share] {
                if (page && page->face() == Face::Loading)
                    page->showLoading(tr("Reading the spans of all ranks…"), static_cast<int>(share * 100));
            },
            Qt::QueuedConnection);
    };
    reader().request<Snapshot>(
        this, "timeline",
        [before = m_state->sharedSnapshot(), progress](store::Recording &recording, const store::CancelToken &cancel) {
            return readSnapshot(recording, before, cancel, before ? Progress() : progress);
        },
        [this](Result<std::shared_ptr<const Snapshot>> result) { onRead(std::move(result)); });
}

void TimelinePage::onRead(Result<std::shared_ptr<const Snapshot>> result)
{
    m_reading = false;
    if (!result) {
        showError(tr("The spans can't be read"), QString::fromStdString(result.error().text));
        return;
    }
    setSnapshot(std::move(*result));
    if (m_readAgain) {
        m_readAgain = false;
        read();
    }
}

void TimelinePage::setSnapshot(std::shared_ptr<const Snapshot> snapshot)
{
    const bool first = !m_state->snapshot();
    m_state->setSnapshot(std::move(snapshot));
    if (m_state->snapshot()->spans == 0) {
        showEmpty(tr("No spans yet"), tr("No rank has recorded a span. With record.level = \"off\" none will; "
                                         "\"light\" records phases, kernels and collectives."));
        return;
    }
    showContent();
    if (first) {
        m_actions->follow->setEnabled(reader().isLive());
        if (reader().isLive())
            m_state->setFollows(true);
        onSelectionChanged();
        m_view->setFocus();
    }
    if (!m_search->text().isEmpty())
        startSearch(m_search->text());
}

void TimelinePage::onSpanPicked()
{
    if (!m_state->picked()) {
        Q_EMIT inspect({});
        return;
    }
    const SpanDetails details = detailsOf(*m_state->snapshot(), *m_state->picked());
    Q_EMIT inspect({details.title, details.facts, details.sql});
    const SpanRecord record = m_state->snapshot()->record(*m_state->picked());
    if (record.unit != kNone)
        selection().setUnit(fromView(m_state->snapshot()->unitOf(record.unit)));
    if (record.step != kNone)
        selection().setStep(record.step);
}

void TimelinePage::onSelectionChanged()
{
    m_state->setBrush(selection().range());
    m_panel->setVisible(m_state->brush().has_value());
    summarizeRange();
}

void TimelinePage::summarizeRange()
{
    if (!m_state->brush() || !m_state->snapshot())
        return;
    m_panel->setBusy(*m_state->brush());
    reader().request<RangeSummary>(
        this, "range",
        [snapshot = m_state->sharedSnapshot(), range = *m_state->brush(), ranks = selection().ranks()](
            store::Recording &, const store::CancelToken &cancel) { return summarize(snapshot, range, ranks, cancel); },
        [this](Result<std::shared_ptr<const RangeSummary>> summary) {
            if (summary)
                m_panel->setSummary(*summary);
        });
}

bool TimelinePage::find(const QString &text)
{
    m_search->setText(text);
    return true;
}

bool TimelinePage::showSteps(int64_t first, int64_t last)
{
    TimeRange range{INT64_MAX, INT64_MIN};
    if (!m_state->snapshot())
        return false;
    for (const RankTimeline &rank : m_state->snapshot()->ranks) {
        for (const store::StepInfo &step : *rank.steps) {
            if (step.number < first || step.number > last)
                continue;
            range.startNs = std::min(range.startNs, step.startNs);
            range.endNs = std::max(range.endNs, step.endNs.value_or(m_state->snapshot()->extent.endNs));
        }
    }
    if (range.isEmpty())
        return false;
    m_state->setVisible(range);
    return true;
}

void TimelinePage::startSearch(const QString &text)
{
    const auto query = SpanQuery::parse(text.toStdString());
    if (!query) {
        m_search->showError(QString::fromStdString(query.error().text));
        return;
    }
    if (query->isEmpty() || !m_state->snapshot()) {
        reader().cancel(this, "search");
        m_state->setFound(nullptr);
        m_search->clearMessage();
        return;
    }
    reader().request<SearchResult>(
        this, "search",
        [snapshot = m_state->sharedSnapshot(), query = *query](store::Recording &, const store::CancelToken &cancel) {
            return search(snapshot, query, cancel);
        },
        [this](Result<std::shared_ptr<const SearchResult>> found) {
            if (!found)
                return;
            m_state->setFound(*found);
            // A live recording is searched again with each snapshot: where one is among the hits stays.
            m_search->showHits((*found)->count, pickedHit(), (*found)->hits.size() < (*found)->count);
        });
}

/// Which of the hits is picked; −1: none.
int64_t TimelinePage::pickedHit() const
{
    const auto &found = m_state->found();
    if (!found || !m_state->picked() || !m_state->snapshot())
        return -1;
    const SpanRef &picked = *m_state->picked();
    const SpanRecord record = m_state->snapshot()->record(picked);
    // The hits may be of another snapshot, where the same span has another place.
    const auto isPicked = [&](const SearchResult::Hit &hit) {
        return found->snapshot->ranks[hit.span.rank].process == m_state->snapshot()->ranks[picked.rank].process &&
               found->snapshot->record(hit.span).spanId == record.spanId;
    };
    const auto first = std::lower_bound(found->hits.begin(), found->hits.end(), record.startNs,
                                        [](const auto &hit, int64_t time) { return hit.startNs < time; });
    for (auto hit = first; hit != found->hits.end() && hit->startNs == record.startNs; ++hit) {
        if (isPicked(*hit))
            return hit - found->hits.begin();
    }
    return -1;
}

void TimelinePage::goToHit(bool forward)
{
    const auto &found = m_state->found();
    if (!found || found->hits.empty() || !m_state->snapshot())
        return;
    const auto &hits = found->hits;
    int64_t index = forward ? 0 : static_cast<int64_t>(hits.size()) - 1;
    if (m_state->picked()) {
        // The picked span itself may be a hit, one of several with the same start.
        const int64_t startNs = m_state->snapshot()->record(*m_state->picked()).startNs;
        const auto byStart = [](const SearchResult::Hit &hit, int64_t time) { return hit.startNs < time; };
        const int64_t own = pickedHit();
        const int64_t next = std::lower_bound(hits.begin(), hits.end(), startNs, byStart) - hits.begin();
        if (forward)
            index = own >= 0 ? own + 1 : next;
        else
            index = (own >= 0 ? own : next) - 1;
        index = (index + static_cast<int64_t>(hits.size())) % static_cast<int64_t>(hits.size());
    }
    const SpanRef &hit = hits[static_cast<size_t>(index)].span;
    const auto now = found->snapshot == m_state->sharedSnapshot() ? std::optional(hit)
                                                                  : m_state->snapshot()->find(*found->snapshot, hit);
    if (now)
        m_view->goTo(*now);
    m_search->showHits(found->count, index, hits.size() < found->count);
}

void TimelinePage::clearAll()
{
    m_state->pick(std::nullopt);
    m_state->setBrush(std::nullopt);
    m_search->setText({});
    selection().setUnit(std::nullopt);
    selection().setStep(std::nullopt);
}

} // namespace shardscope::ui::timeline
