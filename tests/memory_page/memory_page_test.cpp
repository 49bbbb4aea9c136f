// SPDX-License-Identifier: GPL-3.0-or-later
#include "profiler/store/recording.h"
#include "real_recordings.h"
#include "recording_fixture.h"
#include "tests/support/patience.h"
#include "ui/common/chart.h"
#include "ui/common/recording_reader.h"
#include "ui/common/selection.h"
#include "ui/memory/memory_page.h"
#include "ui/memory/peak_table_model.h"
#include "ui/memory/readout_model.h"

#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTableView>
#include <QTest>
#include <set>

namespace shardscope::ui::memory {

class MemoryPageTest : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void init();
    void cleanup();
    void theTableSumsToTheAllocatedBytes();
    void theSumRowsStayLastInEveryOrder();
    void theQueryGivesTheTable();
    void theCsvIsInBytes();
    void aStepIsSelectedFromElsewhere();
    void anotherRankIsChosen();
    void theReadoutTellsEveryFigure();
    void modelsAreSound();
    void withoutCellsTheCategoriesRemain();
    void thinningKeepsPeaks();
    void anEmptyRunSaysSo();
    void aLiveRunLeavesTheFieldsAlone();
    void readingOnIsReadingAll();
    void nothingIsReadWhileHidden();
    void cancelHoldsUntilLoad();
    void everySampleOfTwoGpusAddsUp();
    void thePeakOfTwoGpusIsTheHighestSample();

private:
    qlonglong bytesAt(int row, int column)
    {
        return model().index(row, column).data(PeakTableModel::kBytesRole).toLongLong();
    }
    PeakTableModel &model() { return m_page->peakTable(); }
    std::shared_ptr<MemorySnapshot> smallSnapshot() const;

    test::TemporaryFolder m_folder;
    test::FixtureOptions m_options;
    std::unique_ptr<RecordingReader> m_reader;
    std::unique_ptr<Selection> m_selection;
    std::unique_ptr<MemoryPage> m_page;
};

void MemoryPageTest::initTestCase()
{
    const auto written = test::writeFixtureRecording(m_folder.path() / "run", m_options);
    QVERIFY2(written, written ? "" : written.error().text.c_str());
}

void MemoryPageTest::init()
{
    m_reader = std::make_unique<RecordingReader>();
    m_selection = std::make_unique<Selection>();
    m_page = std::make_unique<MemoryPage>(Page::Context{*m_reader, *m_selection});
    m_page->resize(1280, 800);
    m_page->show();
    m_reader->open(QString::fromStdString((m_folder.path() / "run").string()));
    QTRY_COMPARE(m_page->face(), Page::Face::Content);
    QTRY_VERIFY(m_page->isSettled());
}

void MemoryPageTest::cleanup()
{
    m_page.reset();
    m_reader.reset();
}

void MemoryPageTest::theTableSumsToTheAllocatedBytes()
{
    const int rows = model().rowCount(), total = PeakTableModel::kTotalColumn;
    QVERIFY(rows > 4);
    QCOMPARE(bytesAt(rows - 1, total), qlonglong(test::fixturePeakBytes(m_options)));
    for (int column = total; column < model().columnCount(); ++column) {
        qlonglong sum = 0;
        for (int row = 0; row + 1 < rows; ++row)
            sum += bytesAt(row, column);
        QCOMPARE(sum, bytesAt(rows - 1, column));
    }
    for (int row = 0; row + 2 < rows; ++row) { // all but rounding and the sum
        qlonglong sum = 0;
        for (int column = PeakTableModel::kFirstCategory; column < model().columnCount(); ++column)
            sum += bytesAt(row, column);
        QCOMPARE(sum, bytesAt(row, total));
    }
    QCOMPARE(bytesAt(rows - 2, total), qlonglong(4096));
    QCOMPARE(model().index(0, 1).data(Qt::TextAlignmentRole).toInt(), int(Qt::AlignVCenter | Qt::AlignRight));
}

void MemoryPageTest::theSumRowsStayLastInEveryOrder()
{
    const int rows = model().rowCount(), total = PeakTableModel::kTotalColumn;
    const QString last = model().unitAt(rows - 1), before = model().unitAt(rows - 2);
    for (const Qt::SortOrder order : {Qt::AscendingOrder, Qt::DescendingOrder}) {
        model().sort(total, order);
        QCOMPARE(model().unitAt(rows - 1), last);
        QCOMPARE(model().unitAt(rows - 2), before);
        for (int row = 1; row < rows && model().isUnit(row); ++row) {
            const bool sorted = order == Qt::AscendingOrder ? bytesAt(row - 1, total) <= bytesAt(row, total)
                                                            : bytesAt(row - 1, total) >= bytesAt(row, total);
            QVERIFY(sorted);
        }
    }
}

void MemoryPageTest::theQueryGivesTheTable()
{
    auto recording = store::Recording::open(m_folder.path() / "run");
    QVERIFY(recording.has_value());
    const auto result = recording->sql(m_page->peakSql().toStdString());
    QVERIFY2(result, result ? "" : result.error().text.c_str());
    int64_t sum = 0;
    for (const auto &row : result->rows)
        sum += std::get<int64_t>(row[2]);
    QCOMPARE(sum + 4096, test::fixturePeakBytes(m_options));
}

void MemoryPageTest::theCsvIsInBytes()
{
    const QStringList lines = model().csv().trimmed().split(u'\n');
    QCOMPARE(lines.size(), model().rowCount() + 1);
    QVERIFY(lines[0].startsWith(QLatin1String("unit,total_bytes,parameters_bytes")));
    QCOMPARE(lines.last().section(u',', 1, 1), QString::number(test::fixturePeakBytes(m_options)));
}

void MemoryPageTest::aStepIsSelectedFromElsewhere()
{
    m_selection->setStep(2);
    QTRY_COMPARE(m_page->snapshot()->peak->step, int64_t(2));
    QCOMPARE(m_page->findChild<QSpinBox *>()->value(), 2);
    m_page->findChild<QSpinBox *>()->setValue(1);
    QCOMPARE(m_selection->step(), std::optional<int64_t>(1));
    QTRY_COMPARE(m_page->snapshot()->peak->step, int64_t(1));
}

void MemoryPageTest::anotherRankIsChosen()
{
    auto *ranks = m_page->findChild<QComboBox *>();
    QCOMPARE(ranks->count(), 2);
    const store::Index first = m_page->snapshot()->process;
    ranks->setCurrentIndex(1);
    Q_EMIT ranks->activated(1);
    QTRY_VERIFY(m_page->snapshot()->process != first);
    QVERIFY(m_page->snapshot()->samples.size() > 0);
}

void MemoryPageTest::theReadoutTellsEveryFigure()
{
    ReadoutModel &readout = m_page->readout();
    const auto text = [&](int row, int column) { return readout.index(row, column).data().toString(); };
    readout.setCursor(std::nullopt);
    QCOMPARE(text(0, ReadoutModel::AtCursor), QStringLiteral("—"));
    readout.setCursor(m_page->snapshot()->peak->timeNs);
    std::set<QString> names;
    for (int row = 0; row < readout.rowCount(); ++row) {
        names.insert(text(row, ReadoutModel::Figure));
        QCOMPARE(text(row, ReadoutModel::AtCursor), text(row, ReadoutModel::AtPeak));
    }
    QCOMPARE(names.size(), size_t(readout.rowCount()));
    QVERIFY(text(0, ReadoutModel::AtPeak) == QStringLiteral("4.00 MiB") ||
            text(0, ReadoutModel::AtPeak).contains(u"MiB"));
}

std::shared_ptr<MemorySnapshot> MemoryPageTest::smallSnapshot() const
{
    auto snapshot = std::make_shared<MemorySnapshot>();
    snapshot->catalog = std::make_shared<const store::Catalog>();
    store::MemoryPeak peak;
    peak.allocatedBytes = 1100;
    peak.roundingBytes = 100;
    peak.categoryBytes[0] = 700;
    peak.categoryBytes[8] = 300;
    snapshot->peak = peak;
    return snapshot;
}

void MemoryPageTest::modelsAreSound()
{
    PeakTableModel peak;
    ReadoutModel readout;
    QAbstractItemModelTester peakTester(&peak, QAbstractItemModelTester::FailureReportingMode::QtTest);
    QAbstractItemModelTester readoutTester(&readout, QAbstractItemModelTester::FailureReportingMode::QtTest);
    peak.setSnapshot(smallSnapshot());
    peak.sort(1, Qt::AscendingOrder);
    readout.setSnapshot(smallSnapshot());
    peak.setSnapshot(nullptr);
    readout.setSnapshot(nullptr);
    QCOMPARE(peak.rowCount(), 0);
    QCOMPARE(readout.rowCount(), 0);
}

void MemoryPageTest::withoutCellsTheCategoriesRemain()
{
    PeakTableModel peak;
    peak.setSnapshot(smallSnapshot());
    QCOMPARE(peak.rowCount(), 3);
    QCOMPARE(peak.columnCount(), 4); // unit, total, two categories
    QCOMPARE(peak.index(0, PeakTableModel::kTotalColumn).data(PeakTableModel::kBytesRole).toLongLong(), 1000);
    QCOMPARE(peak.index(1, PeakTableModel::kTotalColumn).data(PeakTableModel::kBytesRole).toLongLong(), 100);
    QCOMPARE(peak.index(2, PeakTableModel::kTotalColumn).data(PeakTableModel::kBytesRole).toLongLong(), 1100);
}

void MemoryPageTest::thinningKeepsPeaks()
{
    store::MemoryColumns samples;
    for (int64_t i = 0; i < 100'000; ++i) {
        samples.timeNs.push_back(i * 10);
        samples.allocatedBytes.push_back(i == 77'777 ? 1'000'000 : i % 500);
    }
    const auto indices = thinned(samples, {0, 1'000'000}, 1000);
    QVERIFY(indices.size() <= 1000);
    QVERIFY(std::is_sorted(indices.begin(), indices.end()));
    QVERIFY(std::find(indices.begin(), indices.end(), size_t(77'777)) != indices.end());
    QCOMPARE(thinned(samples, {500, 600}, 1000).size(), size_t(13)); // eleven inside, one neighbour on each side
    QCOMPARE(sampleAt(samples, -1), std::nullopt);
    QCOMPARE(sampleAt(samples, 15), std::optional<size_t>(1));
    QCOMPARE(sampleAt(samples, INT64_MAX), std::optional<size_t>(99'999));
}

void MemoryPageTest::anEmptyRunSaysSo()
{
    const test::TemporaryFolder empty;
    m_reader->open(QString::fromStdString(empty.path().string()));
    QTRY_VERIFY(m_page->face() == Page::Face::Empty || m_page->face() == Page::Face::Error);
    QCOMPARE(model().rowCount(), 0);
}

void MemoryPageTest::aLiveRunLeavesTheFieldsAlone()
{
    test::TemporaryFolder folder;
    auto live = test::LiveFixture::start(folder.path() / "run", {.steps = 9, .finish = false});
    QVERIFY(live.has_value());
    for (int i = 0; i < 3; ++i)
        QVERIFY(live->writeStep().has_value());
    m_reader->setLive(true);
    m_reader->open(QString::fromStdString((folder.path() / "run").string()));
    QTRY_VERIFY(m_page->snapshot() && m_page->snapshot()->steps.size() == 3);
    auto *step = m_page->findChild<QSpinBox *>();
    auto *ranks = m_page->findChild<QComboBox *>();
    QSignalSpy removed(ranks->model(), &QAbstractItemModel::rowsRemoved);
    QSignalSpy reset(ranks->model(), &QAbstractItemModel::modelReset);
    m_page->activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(m_page.get(), test::kPatienceMs));
    step->setFocus();
    step->selectAll();
    QTest::keyClicks(step, QStringLiteral("2"));
    QVERIFY(live->writeStep().has_value());
    QTRY_COMPARE(m_page->snapshot()->steps.size(), size_t(4));
    QCOMPARE(step->text(), QStringLiteral("2"));
    QCOMPARE(removed.count() + reset.count(), 0);
    QTest::keyClick(step, Qt::Key_Return);
    QCOMPARE(m_selection->step(), std::optional<int64_t>(2));
    QVERIFY(live->finish().has_value());
}

void MemoryPageTest::readingOnIsReadingAll()
{
    test::TemporaryFolder folder;
    auto live = test::LiveFixture::start(folder.path() / "run", {.steps = 5, .finish = false});
    QVERIFY(live.has_value());
    QVERIFY(live->writeStep().has_value());
    auto recording = store::Recording::open(folder.path() / "run");
    QVERIFY(recording.has_value());
    auto grown = readMemory(*recording, {}, nullptr, {});
    QVERIFY(grown.has_value());
    for (int i = 1; i < 5; ++i) {
        QVERIFY(live->writeStep().has_value());
        grown = readMemory(*recording, {}, *grown, {});
        QVERIFY(grown.has_value());
        QCOMPARE((*grown)->additions, i);
    }
    const auto whole = readMemory(*recording, {}, nullptr, {});
    QVERIFY(whole.has_value());
    QCOMPARE((*grown)->steps, (*whole)->steps);
    QCOMPARE((*grown)->places, (*whole)->places);
    QCOMPARE((*grown)->samples.memoryId, (*whole)->samples.memoryId);
    QCOMPARE((*grown)->samples.timeNs, (*whole)->samples.timeNs);
    QCOMPARE((*grown)->samples.categoryBytes, (*whole)->samples.categoryBytes);
    QCOMPARE((*grown)->samples.deviceUsedBytes, (*whole)->samples.deviceUsedBytes);
    QVERIFY(live->finish().has_value());
}

void MemoryPageTest::nothingIsReadWhileHidden()
{
    m_page->hide();
    m_reader->open(QString::fromStdString((m_folder.path() / "run").string()));
    QTRY_VERIFY(m_reader->isOpen());
    QVERIFY(!m_reader->isBusy());
    QVERIFY(!m_page->snapshot());
    m_page->show();
    QTRY_COMPARE(m_page->face(), Page::Face::Content);
}

void MemoryPageTest::cancelHoldsUntilLoad()
{
    test::TemporaryFolder folder;
    auto live = test::LiveFixture::start(folder.path() / "run", {.steps = 5, .finish = false});
    QVERIFY(live.has_value());
    QVERIFY(live->writeStep().has_value());
    m_reader->setLive(true);
    m_reader->open(QString::fromStdString((folder.path() / "run").string()));
    Q_EMIT m_page->cancelled();
    QTRY_VERIFY(m_reader->isOpen());
    Q_EMIT m_page->cancelled(); // opening began to load again
    QCOMPARE(m_page->face(), Page::Face::Empty);
    QSignalSpy changed(m_reader.get(), &RecordingReader::changed);
    QVERIFY(live->writeStep().has_value());
    QVERIFY(changed.wait(test::kPatienceMs));
    QTest::qWait(2500); // longer than the page waits before it reads on
    QCOMPARE(m_page->face(), Page::Face::Empty);
    QPushButton *load = nullptr;
    for (QPushButton *button : m_page->findChildren<QPushButton *>()) {
        if (button->text() == QLatin1String("Load"))
            load = button;
    }
    QVERIFY(load && load->isVisible());
    load->click();
    QTRY_COMPARE(m_page->face(), Page::Face::Content);
    QVERIFY(live->finish().has_value());
}

void MemoryPageTest::everySampleOfTwoGpusAddsUp()
{
    const test::TemporaryFolder folder;
    test::copyRecording("two_gpus", folder.path() / "run");
    auto recording = store::Recording::open(folder.path() / "run");
    QVERIFY(recording.has_value());
    for (int rank = 0; rank < 2; ++rank) {
        const test::PlainSql sql(folder.path() / "run", rank);
        const auto allocated = sql.rows("SELECT time_ns, allocated_bytes FROM memory WHERE place = 'device' "
                                        "ORDER BY time_ns, memory_id");
        const MemoryRequest request{.process = recording->catalog()->rankProcess(1, rank), .place = "device"};
        const auto read = readMemory(*recording, request, nullptr, {});
        QVERIFY(read.has_value());
        const store::MemoryColumns &samples = (*read)->samples;
        QCOMPARE(samples.size(), allocated.size());
        for (size_t i = 0; i < samples.size(); ++i) {
            int64_t sum = samples.roundingBytes[i];
            for (const auto &category : samples.categoryBytes)
                sum += category[i];
            QCOMPARE(sum, allocated[i][1]);
            QCOMPARE(samples.timeNs[i] + recording->catalog()->originNs, allocated[i][0]);
        }
    }
}

void MemoryPageTest::thePeakOfTwoGpusIsTheHighestSample()
{
    const test::TemporaryFolder folder;
    test::copyRecording("two_gpus", folder.path() / "run");
    m_reader->open(QString::fromStdString((folder.path() / "run").string()));
    QTRY_VERIFY(m_page->snapshot() && m_page->snapshot()->samples.size() > 500);
    auto *ranks = m_page->findChild<QComboBox *>();
    for (int rank = 0; rank < 2; ++rank) {
        ranks->setCurrentIndex(rank);
        Q_EMIT ranks->activated(rank);
        QTRY_VERIFY(m_page->isSettled());
        QTRY_COMPARE(m_page->snapshot()->process, m_page->snapshot()->catalog->rankProcess(1, rank));
        const test::PlainSql sql(folder.path() / "run", rank);
        const int rows = model().rowCount();
        QCOMPARE(bytesAt(rows - 1, PeakTableModel::kTotalColumn),
                 qlonglong(sql.value("SELECT max(allocated_bytes) FROM memory WHERE place = 'device'")));
        // Row by row: what memory_peak has of each unit at the step whose peak is the highest, the first of equals.
        for (const auto &unit :
             sql.texts("SELECT ifnull(unit.name, 'no unit'), sum(bytes) FROM memory_peak "
                       "LEFT JOIN unit USING (unit_id) WHERE memory_id = (SELECT memory_id FROM memory "
                       "WHERE is_step_peak ORDER BY allocated_bytes DESC, time_ns LIMIT 1) GROUP BY 1")) {
            int found = 0;
            for (int row = 0; row < rows; ++row) {
                if (model().unitAt(row) != QString::fromStdString(unit[0]))
                    continue;
                ++found;
                QCOMPARE(QString::number(bytesAt(row, PeakTableModel::kTotalColumn)), QString::fromStdString(unit[1]));
            }
            QCOMPARE(found, 1);
        }
    }
    // Steps in view have their own peak below.
    QVERIFY(m_page->showSteps(4, 5));
    const test::PlainSql sql(folder.path() / "run", 1);
    const int64_t step =
        sql.value("SELECT number FROM memory JOIN step USING (step_id) WHERE is_step_peak AND number IN "
                  "(4, 5) ORDER BY allocated_bytes DESC, time_ns LIMIT 1");
    QTRY_COMPARE(m_page->snapshot()->peak->step, step);
}

} // namespace shardscope::ui::memory

QTEST_MAIN(shardscope::ui::memory::MemoryPageTest)
#include "memory_page_test.moc"
