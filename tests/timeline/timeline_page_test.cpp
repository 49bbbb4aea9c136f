// SPDX-License-Identifier: GPL-3.0-or-later
#include "recording_fixture.h"
#include "tests/support/patience.h"
#include "tests/timeline/random_spans.h"
#include "tests/timeline/snapshot_of.h"
#include "ui/common/recording_reader.h"
#include "ui/common/selection.h"
#include "ui/timeline/lane_canvas.h"
#include "ui/timeline/range_panel.h"
#include "ui/timeline/timeline_page.h"
#include "ui/timeline/timeline_view.h"

#include <QAbstractItemModelTester>
#include <QAccessible>
#include <QHelpEvent>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTest>
#include <QToolTip>
#include <ctime>
#include <set>

namespace shardscope::ui::timeline {

/// What this thread computed, whatever else the machine does.
static qint64 threadCpuNs()
{
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<qint64>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

/// A page over the fixture of two ranks and four steps of 10 ms.
class TimelinePageTest : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void init();
    void cleanup();
    void showsTheWholeRecording();
    void keysZoomPanAndFit();
    void wheelZoomsAtTheCursor();
    void clickPicksAndTellsTheInspector();
    void hoverLinksTheCollectiveOnAllRanks();
    void dragSelectsARangeForAllPages();
    void aRangeFromElsewhereIsShown();
    void bracketsGoToTheSameName();
    void marksToggle();
    void searchCountsAndWalksTheHits();
    void lettersInTheSearchFieldAreLetters();
    void foldingByClick();
    void aLiveRecordingIsFollowed();
    void aLiveSearchKeepsItsPlace();
    void nothingIsReadWhileHidden();
    void cancelHoldsUntilLoad();
    void opensOnTheSpansThatAreKept();
    void tablesAreSoundModels();
    void lanesAreAccessible();
    void aMillionSpansPaintQuickly();

private:
    LaneCanvas &lanes() { return m_page->view().lanes(); }
    TimelineState &state() { return m_page->state(); }
    QWidget *viewport() { return lanes().viewport(); }
    QPoint pointOf(const SpanRef &span) { return lanes().rectOf(span).center().toPoint(); }
    SpanRef firstCollective();
    void key(Qt::Key key, Qt::KeyboardModifiers modifiers = {}) { QTest::keyClick(&lanes(), key, modifiers); }

    test::TemporaryFolder m_folder;
    std::unique_ptr<RecordingReader> m_reader;
    std::unique_ptr<Selection> m_selection;
    std::unique_ptr<TimelinePage> m_page;
};

void TimelinePageTest::initTestCase()
{
    QVERIFY(test::writeFixtureRecording(m_folder.path() / "run"));
}

void TimelinePageTest::init()
{
    m_reader = std::make_unique<RecordingReader>();
    m_selection = std::make_unique<Selection>();
    m_page = std::make_unique<TimelinePage>(Page::Context{*m_reader, *m_selection});
    m_page->resize(1280, 800);
    m_page->show();
    QVERIFY(QTest::qWaitForWindowActive(m_page.get(), test::kPatienceMs));
    QCOMPARE(m_page->face(), Page::Face::Empty);
    m_reader->open(QString::fromStdString((m_folder.path() / "run").string()));
    QTRY_COMPARE(m_page->face(), Page::Face::Content);
    QTRY_VERIFY(m_page->isSettled());
    lanes().setFocus();
}

void TimelinePageTest::cleanup()
{
    m_page.reset();
    m_reader.reset();
}

SpanRef TimelinePageTest::firstCollective()
{
    const Snapshot &snapshot = *state().snapshot();
    for (uint32_t l = 0; l < snapshot.ranks[0].lanes.size(); ++l) {
        const Lane &lane = *snapshot.ranks[0].lanes[l];
        if (lane.info.name == "communication")
            return {0, l, 0, lane.tracks()[0].begin()};
    }
    return {};
}

void TimelinePageTest::showsTheWholeRecording()
{
    QVERIFY(state().axis().showsAll());
    QCOMPARE(state().snapshot()->ranks.size(), size_t(2));
    QVERIFY(state().axis().visible().durationNs() >= 40'000'000);
    QVERIFY(m_page->pageActions().size() > 10);
}

void TimelinePageTest::keysZoomPanAndFit()
{
    const int64_t all = state().axis().visible().durationNs();
    key(Qt::Key_W);
    QVERIFY(state().axis().visible().durationNs() < all);
    key(Qt::Key_W);
    const TimeRange before = state().axis().visible();
    key(Qt::Key_D);
    QVERIFY(state().axis().visible().startNs > before.startNs);
    key(Qt::Key_A);
    QCOMPARE(state().axis().visible(), before);
    key(Qt::Key_Right);
    key(Qt::Key_Left);
    QCOMPARE(state().axis().visible(), before);
    key(Qt::Key_S);
    QVERIFY(state().axis().visible().durationNs() > before.durationNs());
    key(Qt::Key_F);
    QVERIFY(state().axis().showsAll());
}

void TimelinePageTest::wheelZoomsAtTheCursor()
{
    const QPointF at(LaneCanvas::kHeaderPx + 300, 60);
    const int64_t under = state().axis().timeAt(300);
    const auto turn = [&](int delta, Qt::KeyboardModifiers modifiers) {
        QWheelEvent event(at, viewport()->mapToGlobal(at), {}, {0, delta}, Qt::NoButton, modifiers, Qt::NoScrollPhase,
                          false);
        QCoreApplication::sendEvent(viewport(), &event);
    };
    turn(240, {});
    QVERIFY(!state().axis().showsAll());
    QVERIFY(std::abs(state().axis().timeAt(300) - under) <= int64_t(state().axis().nsPerPixel()) + 1);
    const int64_t length = state().axis().visible().durationNs();
    const int64_t start = state().axis().visible().startNs;
    turn(-120, Qt::ShiftModifier);
    QCOMPARE(state().axis().visible().durationNs(), length);
    QVERIFY(state().axis().visible().startNs > start);
}

void TimelinePageTest::clickPicksAndTellsTheInspector()
{
    QSignalSpy inspected(m_page.get(), &Page::inspect);
    const SpanRef span = firstCollective();
    state().setVisible(
        {state().snapshot()->record(span).startNs - 1000, state().snapshot()->record(span).endNs() + 1000});
    QTest::mouseClick(viewport(), Qt::LeftButton, {}, pointOf(span));
    QCOMPARE(state().picked(), std::optional(span));
    QCOMPARE(inspected.size(), 1);
    const auto content = inspected[0][0].value<InspectorContent>();
    QVERIFY(!content.title.isEmpty());
    QVERIFY(content.facts.size() > 8);
    QVERIFY(m_selection->unit().has_value());
    QCOMPARE(m_selection->step(), std::optional<int64_t>(0));
    QTest::keyClick(&lanes(), Qt::Key_Escape);
    QVERIFY(!state().picked());
    QVERIFY(!m_selection->unit());
}

void TimelinePageTest::hoverLinksTheCollectiveOnAllRanks()
{
    const SpanRef span = firstCollective();
    state().setVisible(
        {state().snapshot()->record(span).startNs - 1000, state().snapshot()->record(span).endNs() + 1000});
    QTest::mouseMove(viewport(), pointOf(span));
    QTRY_COMPARE(state().hovered(), std::optional(span));
    QCOMPARE(state().links().size(), size_t(2));
    QCOMPARE(state().links()[1].rank, 1u);
    QVERIFY(state().cursorNs().has_value());
    const QPoint at = pointOf(span);
    QHelpEvent help(QEvent::ToolTip, at, viewport()->mapToGlobal(at));
    QCoreApplication::sendEvent(viewport(), &help);
    for (const char *wanted : {"Bus bandwidth", "Unit", "Duration", "Exposed"})
        QVERIFY2(QToolTip::text().contains(QLatin1String(wanted)), wanted);
}

void TimelinePageTest::dragSelectsARangeForAllPages()
{
    const QPoint from(LaneCanvas::kHeaderPx + 100, 80), to(LaneCanvas::kHeaderPx + 400, 90);
    QTest::mousePress(viewport(), Qt::LeftButton, {}, from);
    QTest::mouseMove(viewport(), (from + to) / 2);
    QTest::mouseMove(viewport(), to);
    QTest::mouseRelease(viewport(), Qt::LeftButton, {}, to);
    QVERIFY(m_selection->range().has_value());
    QCOMPARE(m_selection->range()->startNs, state().axis().timeAt(100));
    QCOMPARE(m_selection->range()->endNs, state().axis().timeAt(400));
    auto *panel = m_page->findChild<RangePanel *>();
    QVERIFY(panel->isVisible());
    QTRY_COMPARE(panel->rankSums().rowCount(), 2);
    QVERIFY(panel->topSpans().rowCount() > 3);
    QVERIFY(panel->csv().startsWith(QLatin1String("Rank,Compute")));
    key(Qt::Key_Escape);
    QVERIFY(!m_selection->range());
    QVERIFY(!panel->isVisible());
}

void TimelinePageTest::aRangeFromElsewhereIsShown()
{
    m_selection->setRange(TimeRange{1'000'000, 2'000'000});
    QCOMPARE(state().brush(), m_selection->range());
    auto *panel = m_page->findChild<RangePanel *>();
    QTRY_COMPARE(panel->rankSums().rowCount(), 2);
    m_selection->setRanks({1});
    QTRY_COMPARE(panel->rankSums().rowCount(), 1);
}

void TimelinePageTest::bracketsGoToTheSameName()
{
    const SpanRef span = firstCollective();
    state().pick(span);
    const SpanRecord before = state().snapshot()->record(span);
    key(Qt::Key_BracketRight);
    QVERIFY(state().picked() && *state().picked() != span);
    const SpanRecord after = state().snapshot()->record(*state().picked());
    QCOMPARE(after.name, before.name);
    QVERIFY(after.startNs > before.startNs);
    key(Qt::Key_BracketLeft);
    QCOMPARE(state().picked(), std::optional(span));
}

void TimelinePageTest::marksToggle()
{
    QTest::mouseMove(viewport(), QPoint(LaneCanvas::kHeaderPx + 200, 80));
    QTRY_VERIFY(state().cursorNs().has_value());
    key(Qt::Key_M);
    QCOMPARE(state().marks().size(), size_t(1));
    key(Qt::Key_M);
    QVERIFY(state().marks().empty());
}

void TimelinePageTest::searchCountsAndWalksTheHits()
{
    QVERIFY(m_page->find(QStringLiteral("unit:block.0")));
    QTRY_VERIFY(state().found() != nullptr);
    const auto found = state().found();
    QVERIFY(found->count > 4);
    key(Qt::Key_N);
    QCOMPARE(state().picked(), std::optional(found->hits[0].span));
    key(Qt::Key_N);
    QCOMPARE(state().picked(), std::optional(found->hits[1].span));
    key(Qt::Key_N, Qt::ShiftModifier);
    QCOMPARE(state().picked(), std::optional(found->hits[0].span));
}

void TimelinePageTest::lettersInTheSearchFieldAreLetters()
{
    const TimeRange before = state().axis().visible();
    key(Qt::Key_Slash);
    auto *edit = m_page->findChild<QLineEdit *>();
    QTRY_VERIFY(edit->hasFocus());
    QTest::keyClicks(edit, QStringLiteral("wasdmf"));
    QCOMPARE(edit->text(), QStringLiteral("wasdmf"));
    QCOMPARE(state().axis().visible(), before);
    QTest::keyClick(edit, Qt::Key_Escape);
    QTRY_VERIFY2(lanes().hasFocus(),
                 QApplication::focusWidget() ? QApplication::focusWidget()->metaObject()->className() : "no focus");
}

void TimelinePageTest::foldingByClick()
{
    const size_t rows = state().layout().rows().size();
    QTest::mouseClick(viewport(), Qt::LeftButton, {}, QPoint(20, 10));
    QVERIFY(state().layout().rows().size() < rows);
    QTest::mouseClick(viewport(), Qt::LeftButton, {}, QPoint(20, 10));
    QCOMPARE(state().layout().rows().size(), rows);
}

void TimelinePageTest::aLiveRecordingIsFollowed()
{
    auto live = test::LiveFixture::start(m_folder.path() / "live", {.steps = 5, .finish = false});
    QVERIFY(live.has_value());
    QVERIFY(live->writeStep().has_value());
    m_reader->setLive(true);
    m_reader->open(QString::fromStdString((m_folder.path() / "live").string()));
    QTRY_COMPARE(m_page->face(), Page::Face::Content);
    QVERIFY(state().follows());
    key(Qt::Key_W);
    const int64_t length = state().axis().visible().durationNs();
    const uint64_t spans = state().snapshot()->spans;
    QVERIFY(live->writeStep().has_value());
    QTRY_VERIFY(state().snapshot()->spans > spans);
    QCOMPARE(state().axis().visible().durationNs(), length);
    QVERIFY(state().axis().atEnd());
    key(Qt::Key_A); // who looks at something earlier is left alone
    QVERIFY(!state().follows());
    const TimeRange before = state().axis().visible();
    QVERIFY(live->writeStep().has_value());
    const uint64_t more = state().snapshot()->spans;
    QTRY_VERIFY(state().snapshot()->spans > more);
    QCOMPARE(state().axis().visible(), before);
    QVERIFY(live->finish().has_value());
}

void TimelinePageTest::aLiveSearchKeepsItsPlace()
{
    auto live = test::LiveFixture::start(m_folder.path() / "searched", {.steps = 5, .finish = false});
    QVERIFY(live.has_value());
    QVERIFY(live->writeStep().has_value());
    m_reader->setLive(true);
    m_reader->open(QString::fromStdString((m_folder.path() / "searched").string()));
    QTRY_COMPARE(m_page->face(), Page::Face::Content);
    QVERIFY(m_page->find(QStringLiteral("unit:block.0")));
    QTRY_VERIFY(state().found() != nullptr);
    key(Qt::Key_N);
    key(Qt::Key_N);
    const auto says = [this](const QString &begin) {
        const auto labels = m_page->findChildren<QLabel *>();
        return std::any_of(labels.begin(), labels.end(),
                           [&](const QLabel *label) { return label->text().startsWith(begin); });
    };
    QVERIFY(says(QStringLiteral("2 of ")));
    const uint64_t count = state().found()->count;
    QVERIFY(live->writeStep().has_value());
    QTRY_VERIFY(state().found()->count > count);
    QVERIFY(says(QStringLiteral("2 of ")));
    key(Qt::Key_N);
    QVERIFY(says(QStringLiteral("3 of ")));
    QVERIFY(live->finish().has_value());
}

void TimelinePageTest::nothingIsReadWhileHidden()
{
    m_page->hide();
    m_reader->open(QString::fromStdString((m_folder.path() / "run").string()));
    QTRY_VERIFY(m_reader->isOpen());
    QVERIFY(!m_reader->isBusy());
    QVERIFY(!state().snapshot());
    m_page->show();
    QTRY_COMPARE(m_page->face(), Page::Face::Content);
    // What comes while hidden is read when shown.
    auto live = test::LiveFixture::start(m_folder.path() / "hidden", {.steps = 5, .finish = false});
    QVERIFY(live.has_value());
    QVERIFY(live->writeStep().has_value());
    m_reader->setLive(true);
    m_reader->open(QString::fromStdString((m_folder.path() / "hidden").string()));
    QTRY_COMPARE(m_page->face(), Page::Face::Content);
    m_page->hide();
    const uint64_t spans = state().snapshot()->spans;
    QSignalSpy changed(m_reader.get(), &RecordingReader::changed);
    QVERIFY(live->writeStep().has_value());
    QVERIFY(changed.wait(test::kPatienceMs));
    QTRY_VERIFY(!m_reader->isBusy());
    QCOMPARE(state().snapshot()->spans, spans);
    m_page->show();
    QTRY_VERIFY(state().snapshot()->spans > spans);
    QVERIFY(live->finish().has_value());
}

void TimelinePageTest::cancelHoldsUntilLoad()
{
    auto live = test::LiveFixture::start(m_folder.path() / "cancelled", {.steps = 5, .finish = false});
    QVERIFY(live.has_value());
    QVERIFY(live->writeStep().has_value());
    connect(m_reader.get(), &RecordingReader::opened, m_page.get(), [this] { Q_EMIT m_page->cancelled(); });
    QSignalSpy changed(m_reader.get(), &RecordingReader::changed);
    m_reader->setLive(true);
    m_reader->open(QString::fromStdString((m_folder.path() / "cancelled").string()));
    QTRY_VERIFY(m_page->noticeText().contains(QLatin1String("Not loaded")));
    QVERIFY(live->writeStep().has_value());
    QVERIFY(changed.wait(test::kPatienceMs));
    QTRY_VERIFY(!m_reader->isBusy());
    QCOMPARE(m_page->face(), Page::Face::Empty);
    for (QPushButton *button : m_page->findChildren<QPushButton *>()) {
        if (button->text() == QLatin1String("Load"))
            button->click();
    }
    QTRY_COMPARE(m_page->face(), Page::Face::Content);
    QVERIFY(live->finish().has_value());
}

void TimelinePageTest::opensOnTheSpansThatAreKept()
{
    test::FixtureOptions options{.steps = 12};
    options.retention = {.keepSteps = 2, .keepFirst = 0, .maxBytes = 0};
    QVERIFY(test::writeFixtureRecording(m_folder.path() / "long", options).has_value());
    m_reader->open(QString::fromStdString((m_folder.path() / "long").string()));
    QTRY_COMPARE(m_page->face(), Page::Face::Content);
    const auto &steps = *state().snapshot()->ranks[0].steps;
    QVERIFY(!steps[0].spansKept && steps.back().spansKept);
    QVERIFY(state().axis().visible().startNs > steps[steps.size() / 2].startNs);
    QVERIFY(state().axis().limits().startNs <= steps[0].startNs);
    QVERIFY(!state().axis().showsAll());
    key(Qt::Key_F);
    QVERIFY(state().axis().showsAll());
    // The part without spans does not look like the page, nor like an empty lane.
    const QImage picture = viewport()->grab().toImage();
    std::set<QRgb> colors;
    for (int x = LaneCanvas::kHeaderPx + 4; x < LaneCanvas::kHeaderPx + 40; ++x)
        colors.insert(picture.pixel(x, picture.height() - 4));
    QVERIFY(colors.size() > 1);
}

void TimelinePageTest::tablesAreSoundModels()
{
    RankSumsModel sums;
    TopSpansModel top;
    QAbstractItemModelTester sumsTester(&sums, QAbstractItemModelTester::FailureReportingMode::QtTest);
    QAbstractItemModelTester topTester(&top, QAbstractItemModelTester::FailureReportingMode::QtTest);
    const auto summary = summarize(state().sharedSnapshot(), state().axis().limits(), {}, {});
    QVERIFY(summary.has_value());
    sums.setSummary(*summary);
    top.setSummary(*summary);
    for (int row = 0; row < sums.rowCount(); ++row) {
        const auto ns = [&](int column) { return sums.index(row, column).data(kSortRole).toLongLong(); };
        QCOMPARE(ns(RankSumsModel::Compute) + ns(RankSumsModel::Exposed) + ns(RankSumsModel::ExposedCopy) +
                     ns(RankSumsModel::Idle),
                 qlonglong(state().axis().limits().durationNs()));
        QCOMPARE(ns(RankSumsModel::Overlapped) + ns(RankSumsModel::Exposed), ns(RankSumsModel::Communication));
    }
    sums.setSummary(nullptr);
    QCOMPARE(sums.rowCount(), 0);
}

void TimelinePageTest::lanesAreAccessible()
{
    QAccessibleInterface *list = QAccessible::queryAccessibleInterface(&lanes());
    QVERIFY(list);
    QCOMPARE(list->role(), QAccessible::List);
    QCOMPARE(list->childCount(), int(state().layout().rows().size()));
    QStringList names;
    for (int i = 0; i < list->childCount(); ++i) {
        QCOMPARE(list->indexOfChild(list->child(i)), i);
        names << list->child(i)->text(QAccessible::Name);
        QVERIFY(!list->child(i)->rect().isEmpty());
    }
    QCOMPARE(names[0], QStringLiteral("rank 0"));
    QVERIFY(names.filter(QRegularExpression(QStringLiteral("^rank 1, communication, \\d+ spans$"))).size() == 1);
}

void TimelinePageTest::aMillionSpansPaintQuickly()
{
    // Four ranks of eight lanes. The time is printed, not asserted: machines differ and are busy.
    std::vector<std::vector<Lane>> ranks(4);
    for (uint32_t r = 0; r < 4; ++r) {
        for (uint32_t l = 0; l < 8; ++l)
            ranks[r].push_back(
                laneWith(LaneKind::Stream, l, "stream " + std::to_string(l), randomStream(31'250, r * 8 + l)));
    }
    m_page->resize(1920, 1200);
    m_page->setSnapshot(snapshotOf(std::move(ranks)));
    QCOMPARE(state().snapshot()->spans, uint64_t(1'000'000));
    state().fit();
    for (const int zooms : {0, 6, 12, 18, 24, 30}) {
        state().fit();
        for (int i = 0; i < zooms; ++i)
            state().zoomAt(700, 0.7);
        qint64 best = INT64_MAX, bestCpu = INT64_MAX;
        for (int i = 0; i < 5; ++i) {
            state().panPixels(i % 2 ? 3 : -3);
            const qint64 cpuBefore = threadCpuNs();
            viewport()->repaint();
            bestCpu = std::min(bestCpu, threadCpuNs() - cpuBefore);
            best = std::min(best, lanes().lastPaintNs());
        }
        qInfo("%2d zooms (%lld ns in view): lanes painted in %.2f ms; whole repaint %.2f ms of CPU", zooms,
              static_cast<long long>(state().axis().visible().durationNs()), static_cast<double>(best) * 1e-6,
              static_cast<double>(bestCpu) * 1e-6);
        QVERIFY(best > 0);
    }
}

} // namespace shardscope::ui::timeline

QTEST_MAIN(shardscope::ui::timeline::TimelinePageTest)
#include "timeline_page_test.moc"
