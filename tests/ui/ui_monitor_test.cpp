// SPDX-License-Identifier: Apache-2.0
#include "core/base/clock.h"
#include "core/run/run_lock.h"
#include "core/run/run_status.h"
#include "core/run/user_notes.h"
#include "profiler/store/writer.h"
#include "real_recordings.h"
#include "recording_fixture.h"
#include "tests/support/patience.h"
#include "ui/common/chart.h"
#include "ui/common/chart_markers.h"
#include "ui/common/colors.h"
#include "ui/common/elided_label.h"
#include "ui/common/paths.h"
#include "ui/common/recording_reader.h"
#include "ui/common/selection.h"
#include "ui/common/text.h"
#include "ui/common/theme.h"
#include "ui/monitor/events_model.h"
#include "ui/monitor/failure_card.h"
#include "ui/monitor/live_cards.h"
#include "ui/monitor/live_charts.h"
#include "ui/monitor/live_data.h"
#include "ui/monitor/live_page.h"
#include "ui/monitor/live_series.h"
#include "ui/monitor/log_tail.h"
#include "ui/monitor/logs_page.h"
#include "ui/monitor/run_commands.h"
#include "ui/monitor/run_files.h"
#include "ui/monitor/run_header.h"
#include "ui/monitor/run_list_model.h"
#include "ui/monitor/run_state.h"
#include "ui/monitor/run_status_line.h"
#include "ui/monitor/run_watcher.h"
#include "ui/monitor/stat_card.h"

#include <QAbstractButton>
#include <QAbstractItemModelTester>
#include <QAction>
#include <QComboBox>
#include <QElapsedTimer>
#include <QLabel>
#include <QLocalServer>
#include <QLocalSocket>
#include <QMessageBox>
#include <QSignalSpy>
#include <QTest>
#include <QThreadPool>
#include <QToolButton>
#include <cmath>
#include <csignal>
#include <fstream>
#include <unistd.h>

using namespace shardscope;
using namespace shardscope::ui;

static run::RunFolder makeRun(const std::filesystem::path &root, RunState state, int64_t startedNs)
{
    const run::RunFolder folder(root);
    std::filesystem::create_directories(root);
    run::RunStatus status;
    status.state = state;
    status.attempt = 1;
    status.startedNs = startedNs;
    status.step = 3;
    status.steps = 10;
    status.loss = 8.41;
    status.lossTail = {9, 8.8, 8.41};
    status.tokensPerSecond = 18234;
    if (!run::writeStatus(folder, status))
        qFatal("no state.json");
    return folder;
}

/// A rank's database with what a device's late figures look like: steps are open for long.
struct LateRank
{
    explicit LateRank(const std::filesystem::path &run, int number = 0, int worldSize = 1)
    {
        std::filesystem::create_directories(run / "attempt-1");
        const std::string file = fmt::format("rank-{}.sqlite", number);
        auto opened = store::Writer::open(run / "attempt-1" / file, {1, {}});
        if (!opened)
            qFatal("%s", opened.error().text.c_str());
        writer.emplace(std::move(*opened));
        writer->put(store::ProcessRow{.attempt = 1, .rank = number, .worldSize = worldSize, .startedNs = kOriginNs});
        writer->put(store::MetaRow{1, "origin_ns", std::to_string(kOriginNs)});
    }
    void step(int64_t number, bool ended)
    {
        store::StepRow row{.stepId = number + 1, .number = number, .startNs = kOriginNs + number * kStepNs};
        if (ended)
            row.endNs = row.startNs + kStepNs;
        writer->put(row);
    }
    void sample(int64_t id, int64_t number, int64_t afterNs, int64_t bytes, bool peak)
    {
        store::MemoryRow row{.memoryId = id, .timeNs = kOriginNs + number * kStepNs + afterNs};
        row.stepId = number + 1;
        row.isStepPeak = peak;
        row.categoryBytes[0] = row.allocatedBytes = bytes;
        writer->add(row);
    }
    static constexpr int64_t kOriginNs = 1'700'000'000'000'000'000;
    static constexpr int64_t kStepNs = 25'000'000;
    std::optional<store::Writer> writer;
};

/// A run whose supervisor takes commands and never answers.
struct HungRun
{
    explicit HungRun(const std::filesystem::path &root)
        : folder(root)
    {
        std::filesystem::create_directories(root);
        if (!server.listen(fromPath(root / "s")))
            qFatal("no socket");
        status.state = RunState::Running;
        status.attempt = 1;
        status.pid = getpid();
        status.heartbeatNs = realtimeNs();
        status.socket = (root / "s").string();
        auto locked = run::RunLock::acquire(folder);
        if (!locked || !run::writeStatus(folder, status))
            qFatal("no run");
        lock.emplace(std::move(*locked));
        QObject::connect(&server, &QLocalServer::newConnection, &server, [this] {
            QLocalSocket *socket = server.nextPendingConnection();
            QObject::connect(socket, &QIODevice::readyRead, socket, [this, socket] {
                while (socket->canReadLine())
                    received << QString::fromUtf8(socket->readLine());
            });
        });
    }
    bool got(const char *command) const
    {
        return !received.filter(QLatin1Char('"') + QLatin1String(command) + QLatin1Char('"')).isEmpty();
    }
    run::RunFolder folder;
    run::RunStatus status;
    QLocalServer server;
    std::optional<run::RunLock> lock;
    QStringList received;
};

class UiMonitorTest : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void runListKeepsItsRows()
    {
        test::TemporaryFolder temporary;
        RunList runs;
        for (int i = 0; i < 4; ++i)
            runs.push_back(run::summarize(makeRun(temporary.path() / std::to_string(i), RunState::Done, i), 0));
        RunListModel model;
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.update({runs[2], runs[1]});
        const QPersistentModelIndex one = model.indexOf(fromPath(runs[1].folder.root()));
        QCOMPARE(one.row(), 1);
        model.update({runs[3], runs[1], runs[2], runs[0]});
        QCOMPARE(model.rowCount(), 4);
        QCOMPARE(one.row(), 1);
        QCOMPARE(model.index(2).data(RunListModel::FolderRole).toString(), fromPath(runs[2].folder.root()));
        model.update({runs[0], runs[1]});
        QCOMPARE(model.rowCount(), 2);
        QCOMPARE(one.row(), 1);
        model.update({});
        QCOMPARE(model.rowCount(), 0);
        QVERIFY(!one.isValid());
    }

    void runListTellsItsFigures()
    {
        test::TemporaryFolder temporary;
        run::RunSummary summary = run::summarize(makeRun(temporary.path() / "r", RunState::Done, 1), 0);
        summary.status.peakAllocatedBytes = int64_t{3} << 30;
        summary.status.exposedCommunicationShare = 0.31;
        QCOMPARE(RunListModel::speedLine(summary), QStringLiteral("8.4100 · 18.2 k tok/s"));
        QCOMPARE(RunListModel::memoryLine(summary), QStringLiteral("3.00 GiB · 31.0 % exposed (rank 0)"));
        summary.status.ranks = {{.rank = 0}, {.rank = 1}}; // a supervisor knows all of them
        QCOMPARE(RunListModel::memoryLine(summary), QStringLiteral("3.00 GiB · 31.0 % exposed"));
    }

    void aRunThatWasStoppedIsNotDone()
    {
        run::RunStatus status;
        status.state = RunState::Done;
        status.step = 44;
        status.steps = 4000;
        QCOMPARE(stateText(status), QStringLiteral("Stopped at step 44 of 4000"));
        const QString icon = stateIcon(status);
        QVERIFY(RunStatusLine::progressText(status).contains(QLatin1String("Stopped")));
        status.step = 4000;
        QCOMPARE(stateText(status), QStringLiteral("Done, step 4000 of 4000"));
        QVERIFY(icon != stateIcon(status));
        status.step = 44;
        status.state = RunState::Failed;
        QCOMPARE(stateText(status), QStringLiteral("Failed, step 44 of 4000"));
    }

    void watcherSeesRunsComeChangeAndGo()
    {
        test::TemporaryFolder temporary;
        const auto runs = temporary.path() / "ein Ordner" / "runs"; // not there yet
        RunWatcher watcher(fromPath(runs));
        QSignalSpy changed(&watcher, &RunWatcher::changed);
        QVERIFY(changed.wait(test::kPatienceMs));
        QVERIFY(watcher.runs()->empty());
        const run::RunFolder folder = makeRun(runs / "first", RunState::Done, realtimeNs());
        watcher.refresh();
        QTRY_COMPARE(watcher.runs()->size(), size_t(1));
        makeRun(runs / "second", RunState::Done, realtimeNs());
        QTRY_COMPARE(watcher.runs()->size(), size_t(2)); // inotify tells, no refresh()
        watcher.setVisible({fromPath(folder.root())});
        makeRun(folder.root(), RunState::Failed, 1);
        QTRY_VERIFY(std::any_of(watcher.runs()->begin(), watcher.runs()->end(),
                                [](const auto &run) { return run.status.state == RunState::Failed; }));
        std::filesystem::remove_all(folder.root());
        QTRY_COMPARE(watcher.runs()->size(), size_t(1));
        const run::RunFolder elsewhere = makeRun(temporary.path() / "elsewhere", RunState::Done, 5);
        watcher.addRun(fromPath(elsewhere.root()));
        QTRY_COMPARE(watcher.runs()->size(), size_t(2));
    }

    void renamingWritesUserNotes()
    {
        test::TemporaryFolder temporary;
        const run::RunFolder folder = makeRun(temporary.path() / "run", RunState::Done, 1);
        bool done = false;
        renameRun(this, fromPath(folder.root()), QStringLiteral("  größer "), [&done](const Result<> &result) {
            QVERIFY(result.has_value());
            done = true;
        });
        QTRY_VERIFY(done);
        QCOMPARE(run::readUserNotes(folder)->shownName, std::string("größer"));
    }

    void liveSeriesFollowsARun()
    {
        test::TemporaryFolder temporary;
        test::FixtureOptions options;
        options.steps = 6;
        options.slowRank = 1;
        QVERIFY(test::writeFixtureRecording(temporary.path() / "run", options).has_value());
        Result<store::Recording> recording = store::Recording::open(temporary.path() / "run");
        QVERIFY(recording.has_value());
        LiveSeries series;
        const auto first = loadLive(*recording, {}, {});
        QVERIFY(first.has_value());
        series.add(**first);
        QCOMPARE(series.ranks(), (std::vector<int>{0, 1}));
        QCOMPARE(series.loss().x.size(), size_t(6));
        QCOMPARE(series.lastStep()->second, int64_t(5));
        // The parts of each step sum to its wall time.
        const ChartData all = series.stepTime(std::nullopt);
        QCOMPARE(all.x.size(), size_t(7)); // from the first one's begin on
        QVERIFY(std::isnan(all.columns[0][0]));
        for (size_t i = 1; i < all.x.size(); ++i) {
            double sum = 0;
            for (const auto &column : all.columns)
                sum += column[i];
            const StepPoint *slowest = series.step({1, static_cast<int64_t>(i) - 1}, std::nullopt);
            QCOMPARE(all.x[0], static_cast<double>(series.step({1, 0}, std::nullopt)->startNs) * 1e-9);
            QCOMPARE(sum, static_cast<double>(slowest->wallNs()));
        }
        // Memory adds up to the fixture's peak.
        const ChartData memory = series.memory(0);
        double peak = 0;
        for (size_t i = 0; i < memory.x.size(); ++i) {
            double sum = 0;
            for (size_t c = 0; c <= kMemoryCategories; ++c)
                sum += memory.columns[c][i];
            peak = std::max(peak, sum);
        }
        QCOMPARE(peak, static_cast<double>(test::fixturePeakBytes(options)));
        // Reading on from where it was adds no sample twice.
        const size_t samples = memory.x.size();
        const auto again = loadLive(*recording, (*first)->position, {});
        series.add(**again);
        QCOMPARE(series.memory(0).x.size(), samples);
        QCOMPARE(series.loss().x.size(), size_t(6));
        QCOMPARE(series.stepAt(-1.0)->second, int64_t(0));
    }

    void theLivePageOfTwoGpusAddsUp()
    {
        test::TemporaryFolder temporary;
        test::copyRecording("two_gpus", temporary.path() / "run");
        Result<store::Recording> recording = store::Recording::open(temporary.path() / "run");
        QVERIFY(recording.has_value());
        const auto delta = loadLive(*recording, {}, {});
        QVERIFY(delta.has_value());
        LiveSeries series;
        series.add(**delta);
        const test::PlainSql ranks(temporary.path() / "run", 0);
        const auto exposed =
            ranks.rows("SELECT number, a.exposed_communication_ns + b.exposed_communication_ns, a.wall_ns + b.wall_ns "
                       "FROM step a JOIN other.step b USING (number) ORDER BY number");
        QCOMPARE(exposed.size(), size_t(6));
        for (const auto &step : exposed)
            QCOMPARE(series.exposedShare({1, step[0]}), std::optional(double(step[1]) / double(step[2])));
        // Of all ranks: the one that the others wait for. It stands least in collectives.
        const auto standing = ranks.rows(
            "SELECT number, a.exposed_communication_ns + a.idle_peer_ns, b.exposed_communication_ns + b.idle_peer_ns "
            "FROM step a JOIN other.step b USING (number) ORDER BY number");
        const ChartData last = series.stepTime(std::nullopt);
        for (size_t i = 0; i < standing.size(); ++i) {
            const int rank = standing[i][2] < standing[i][1] ? 1 : 0;
            QCOMPARE(series.step({1, standing[i][0]}, std::nullopt)->rank, rank);
            QCOMPARE(last.labels[i + 1], QStringLiteral("Step %1, rank %2").arg(standing[i][0]).arg(rank));
        }
        // Steps 2 to 6 in view: their points, no rank's of step 1.
        const auto view = series.rangeOf(2, 6);
        QVERIFY(view.has_value());
        for (const ChartData &data : {series.loss(), series.stepTime(0), series.stepTime(1)}) {
            const auto inView = std::count_if(data.x.begin(), data.x.end(),
                                              [&view](double x) { return x >= view->first && x <= view->second; });
            QCOMPARE(inView, 5);
        }
        for (int rank = 0; rank < 2; ++rank) {
            const test::PlainSql sql(temporary.path() / "run", rank);
            // The samples are few enough that none is left out.
            const auto allocated =
                sql.rows("SELECT allocated_bytes FROM memory WHERE place = 'device' ORDER BY time_ns, memory_id");
            const ChartData memory = series.memory(rank);
            QCOMPARE(memory.x.size(), allocated.size());
            for (size_t i = 0; i < memory.x.size(); ++i) {
                double sum = 0;
                for (size_t c = 0; c <= kMemoryCategories; ++c)
                    sum += memory.columns[c][i];
                QCOMPARE(sum, double(allocated[i][0]));
            }
            const auto walls = sql.rows("SELECT end_ns - start_ns FROM step ORDER BY number");
            const ChartData steps = series.stepTime(rank);
            QCOMPARE(steps.x.size(), walls.size() + 1);
            for (size_t i = 0; i < walls.size(); ++i) {
                double sum = 0;
                for (const auto &part : steps.columns)
                    sum += part[i + 1];
                QCOMPARE(sum, double(walls[i][0]));
            }
        }
    }

    /// One sample of a rank, as a device's.
    static store::MemoryColumns memoryOf(store::Index process, int64_t reservedBytes, int64_t processUsedBytes)
    {
        store::MemoryColumns memory;
        memory.process = process;
        memory.timeNs = {1000};
        for (auto &column : memory.categoryBytes)
            column = {0};
        memory.categoryBytes[0] = {reservedBytes / 2};
        memory.roundingBytes = {0};
        memory.allocatedBytes = {reservedBytes / 2};
        memory.reservedBytes = {reservedBytes};
        memory.processUsedBytes = {processUsedBytes};
        return memory;
    }

    /// The chart of each rank's memory tells of its own process.
    void theProcessFarAboveIsToldInWords()
    {
        constexpr int64_t kReserved = 1'000'000;
        auto catalog = std::make_shared<store::Catalog>();
        catalog->processes.resize(3);
        for (int rank = 0; rank < 3; ++rank)
            catalog->processes[static_cast<size_t>(rank)].rank = rank;
        LiveDelta delta;
        delta.catalog = catalog;
        delta.memory = {memoryOf(0, kReserved, 5 * kReserved), memoryOf(1, kReserved, 7 * kReserved),
                        memoryOf(2, kReserved, 2 * kReserved)};
        LiveSeries series;
        series.add(delta);
        Selection selection;
        LiveCharts charts(selection);
        charts.refresh(series, std::nullopt);
        QStringList remarks, lines;
        for (int rank = 0; rank < 3; ++rank) {
            const auto all = charts.findChildren<Chart *>();
            const auto chart = std::ranges::find_if(
                all, [&](const Chart *one) { return one->title() == QStringLiteral("Memory of rank %1").arg(rank); });
            QVERIFY(chart != all.end());
            QString texts;
            for (const auto *label : (*chart)->findChildren<ElidedLabel *>())
                texts += label->text();
            remarks << texts;
            lines << (*chart)->csv().section(u'\n', 0, 0);
        }
        for (const int rank : {0, 1}) {
            const int64_t used = rank == 0 ? 5 * kReserved : 7 * kReserved;
            QVERIFY2(remarks[rank].contains(
                         QStringLiteral("Far above, not drawn: used by the process %1").arg(bytesText(used))),
                     qPrintable(remarks[rank]));
            QVERIFY2(lines[rank].contains(QLatin1String("Reserved")) && !lines[rank].contains(QLatin1String("NVML")),
                     qPrintable(lines[rank]));
        }
        QVERIFY2(!remarks[2].contains(QStringLiteral("Far above")), qPrintable(remarks[2]));
        QVERIFY2(lines[2].contains(QLatin1String("NVML")), qPrintable(lines[2]));
    }

    void thePauseBetweenAttemptsTakesNoRoom()
    {
        constexpr int64_t kSecond = 1'000'000'000;
        LiveDelta delta;
        auto catalog = std::make_shared<store::Catalog>();
        catalog->processes = {{.attempt = 1, .rank = 0, .startedNs = 0, .endedNs = 11 * kSecond},
                              {.attempt = 2, .rank = 0, .startedNs = 600 * kSecond}};
        delta.catalog = catalog;
        const auto step = [&](store::Index process, int64_t number, int64_t endS) {
            store::StepInfo info{.process = process, .number = number, .startNs = (endS - 1) * kSecond};
            info.endNs = endS * kSecond;
            info.loss = 10.0 - static_cast<double>(number);
            delta.steps.push_back(info);
        };
        const auto sample = [&](store::Index process, int64_t atS) {
            store::MemoryColumns columns{.process = process};
            columns.timeNs = {atS * kSecond};
            for (auto &column : columns.categoryBytes)
                column = {1};
            columns.roundingBytes = columns.allocatedBytes = columns.reservedBytes = columns.processUsedBytes = {1};
            delta.memory.push_back(columns);
        };
        for (int64_t number = 1; number <= 3; ++number)
            step(0, number, number * 3);
        step(1, 2, 602); // from a checkpoint of step 1: this one again
        step(1, 3, 604);
        sample(0, 9);
        sample(1, 601);
        delta.events = {{.process = 1, .timeNs = 603 * kSecond, .kind = EventKind::Checkpoint}};
        LiveSeries series;
        series.add(delta);
        // The second attempt begins where the first ended, and no line leads there.
        const ChartData loss = series.loss();
        QCOMPARE(loss.x, (std::vector<double>{3, 6, 9, 11, 13, 15}));
        QVERIFY(std::isnan(loss.columns[0][3]));
        QCOMPARE(loss.labels[1], QStringLiteral("Step 2, attempt 1"));
        QCOMPARE(loss.labels[3], QStringLiteral("Attempt 2 begins"));
        QCOMPARE(loss.labels[4], QStringLiteral("Step 2, attempt 2"));
        const ChartData time = series.stepTime(std::nullopt);
        QCOMPARE(time.x.size(), size_t(7));
        QVERIFY(std::isnan(time.columns[0][0]) && std::isnan(time.columns[0][4]));
        QCOMPARE(series.memory(0).x, (std::vector<double>{9, 11, 12}));
        QVERIFY(std::isnan(series.memory(0).columns[0][1]));
        QCOMPARE(*series.stepAt(12.5), (LiveSeries::StepKey{2, 2}));
        QCOMPARE(*series.rangeOf(3, 3), (std::pair{8.0, 15.0}));
        QCOMPARE(series.loss(std::pair{12.0, 14.0}).x, (std::vector<double>{9, 11, 13, 15}));
        // What is brushed is selected in the run's time, and an event stands where it was.
        Selection selection;
        LiveCharts charts(selection);
        charts.refresh(series, {});
        charts.setEvents(series.events());
        auto *chart = charts.findChild<Chart *>();
        QCOMPARE(chart->markers().markers(),
                 (ChartMarkers::Markers{{11, QStringLiteral("Attempt 2")}, {14, QStringLiteral("Checkpoint")}}));
        Q_EMIT chart->brushed(12, 13);
        QCOMPARE(*selection.range(), (TimeRange{601 * kSecond, 602 * kSecond}));
        EventsModel events;
        events.add(delta.events, *catalog, series.time());
        QCOMPARE(events.index(0, EventsModel::Time).data().toString(), QStringLiteral("14 s"));
    }

    void stepsThatEndLateReachTheSeries()
    {
        test::TemporaryFolder temporary;
        LateRank rank(temporary.path() / "run");
        constexpr int64_t kOpen = 40; // a second of steps of 25 ms
        LiveSeries series;
        LivePosition position;
        std::optional<store::Recording> recording;
        for (int64_t number = 0; number < 200; ++number) {
            rank.step(number, false);
            if (number >= kOpen)
                rank.step(number - kOpen, true);
            QVERIFY(rank.writer->flush().has_value());
            if (!recording)
                recording.emplace(std::move(*store::Recording::open(temporary.path() / "run")));
            const auto delta = loadLive(*recording, position, {});
            QVERIFY(delta.has_value());
            position = (*delta)->position;
            series.add(**delta);
        }
        QCOMPARE(series.loss().x.size(), size_t(200 - kOpen));
        QVERIFY(position.processes.at(0).nextStep > 100); // settled ones are not read again for ever
    }

    void peaksThatAreWrittenLateReachTheSeries()
    {
        test::TemporaryFolder temporary;
        LateRank rank(temporary.path() / "run");
        rank.step(0, false);
        rank.sample(1, 0, 1'000'000, 100, false);
        rank.sample(2, 0, 20'000'000, 200, false);
        QVERIFY(rank.writer->flush().has_value());
        auto recording = store::Recording::open(temporary.path() / "run");
        QVERIFY(recording.has_value());
        LiveSeries series;
        const auto first = loadLive(*recording, {}, {});
        QVERIFY(first.has_value());
        series.add(**first);
        QCOMPARE(series.memory(0).x.size(), size_t(2));
        rank.step(0, true);
        rank.sample(3, 0, 10'000'000, 900, true);
        QVERIFY(rank.writer->flush().has_value());
        const auto second = loadLive(*recording, (*first)->position, {});
        QVERIFY(second.has_value());
        series.add(**second);
        const ChartData memory = series.memory(0);
        QCOMPARE(memory.columns[0], (std::vector<double>{100, 900, 200}));
        QVERIFY(std::is_sorted(memory.x.begin(), memory.x.end()));
    }

    void whatARankWritesLaterThanAnotherReachesTheEvents()
    {
        test::TemporaryFolder temporary;
        LateRank first(temporary.path() / "run", 0, 2);
        LateRank second(temporary.path() / "run", 1, 2);
        const auto write = [](LateRank &rank, int64_t seconds, const char *text) {
            rank.writer->add(store::EventRow{.timeNs = LateRank::kOriginNs + seconds * 1'000'000'000, .text = text});
            QVERIFY(rank.writer->flush().has_value());
        };
        QVERIFY(second.writer->flush().has_value());
        write(first, 1, "first of rank 0");
        write(first, 3, "second of rank 0");
        auto recording = store::Recording::open(temporary.path() / "run");
        QVERIFY(recording.has_value());
        EventsModel model;
        LivePosition position;
        const auto read = [&] {
            const auto delta = loadLive(*recording, position, {});
            QVERIFY(delta.has_value());
            position = (*delta)->position;
            model.add((*delta)->events, *(*delta)->catalog);
        };
        read();
        QCOMPARE(model.rowCount(), 2);
        write(second, 2, "of rank 1, between them");
        read();
        read(); // nothing twice
        QCOMPARE(model.rowCount(), 3);
        QCOMPARE(model.index(0, EventsModel::Text).data().toString(), QStringLiteral("second of rank 0"));
        QCOMPARE(model.index(1, EventsModel::Text).data().toString(), QStringLiteral("of rank 1, between them"));
        QCOMPARE(model.index(2, EventsModel::Text).data().toString(), QStringLiteral("first of rank 0"));
    }

    void aProcessThatTheCatalogueLacksIsADash()
    {
        EventsModel model;
        model.add({{.process = store::kNone, .timeNs = 1, .text = "x"}, {.process = 3, .timeNs = 2, .text = "y"}}, {});
        QCOMPARE(model.index(0, EventsModel::Who).data().toString(), QStringLiteral("—"));
        QCOMPARE(model.index(1, EventsModel::Who).data().toString(), QStringLiteral("—"));
    }

    void manyStepsAreThinnedToTheirExtremes()
    {
        auto catalog = std::make_shared<store::Catalog>();
        catalog->processes.resize(1);
        catalog->processes[0].rank = 0;
        LiveDelta delta;
        delta.catalog = catalog;
        constexpr int64_t kSteps = 100'000, kSlow = 77'777, kValidated = 12'345;
        for (int64_t i = 0; i < kSteps; ++i) {
            store::StepInfo step{.process = 0, .number = i, .startNs = i * 1'000'000'000};
            step.endNs = step.startNs + (i == kSlow ? 900'000'000 : 100'000'000 + i % 7);
            step.loss = i == kSlow ? 50.0 : 5.0 + static_cast<double>(i % 3);
            if (i == kValidated)
                step.validationLoss = 4.5;
            delta.steps.push_back(step);
        }
        LiveSeries series;
        series.add(delta);
        const ChartData loss = series.loss();
        QVERIFY2(loss.x.size() <= LiveSeries::kMaxPoints + 2, qPrintable(QString::number(loss.x.size())));
        QVERIFY(loss.x.size() > LiveSeries::kMaxPoints / 4);
        QVERIFY(std::is_sorted(loss.x.begin(), loss.x.end()));
        QCOMPARE(*std::max_element(loss.columns[0].begin(), loss.columns[0].end()), 50.0);
        QCOMPARE(loss.labels.back(), QStringLiteral("Step %1").arg(kSteps - 1));
        QCOMPARE(std::count(loss.columns[1].begin(), loss.columns[1].end(), 4.5), 1);
        const ChartData time = series.stepTime(std::nullopt);
        QVERIFY(time.x.size() <= LiveSeries::kMaxPoints + 2);
        QCOMPARE(*std::max_element(time.columns[0].begin() + 1, time.columns[0].end()), 900e6);
        // Zoomed in, every step of the view is there.
        const ChartData some = series.loss(std::pair{1000.05, 1999.05});
        QCOMPARE(some.x.size(), size_t(1001));
        QCOMPARE(some.labels.front(), QStringLiteral("Step 999"));
    }

    void chartsAreDrawnWhileThePageIsShown()
    {
        test::TemporaryFolder temporary;
        QVERIFY(test::writeFixtureRecording(temporary.path() / "run").has_value());
        RecordingReader reader;
        Selection selection;
        QWidget window;
        RunCommands commands(&window);
        LivePage page({reader, selection}, commands);
        page.resize(1200, 800);
        auto *loss = page.findChild<Chart *>();
        reader.open(fromPath(temporary.path() / "run"));
        QTRY_VERIFY(reader.isOpen() && !reader.isBusy());
        QCOMPARE(loss->csv().trimmed().count(u'\n'), 0);
        page.show();
        QCOMPARE(loss->csv().trimmed().count(u'\n'), 4);
    }

    void besideTheDockNothingIsCutOff()
    {
        constexpr int kPageWidth = 588; // what the list and the dock leave of 1280, without margins and scroll bar
        test::TemporaryFolder temporary;
        QWidget window;
        RunCommands commands(&window);
        RunHeader header(commands);
        header.setRun(run::summarize(makeRun(temporary.path() / "run", RunState::Running, 1), 0));
        LiveCards cards;
        for (QWidget *widget : {static_cast<QWidget *>(&header), static_cast<QWidget *>(&cards)}) {
            widget->resize(kPageWidth, 200);
            widget->show();
            QVERIFY(QTest::qWaitForWindowExposed(widget, test::kPatienceMs));
        }
        for (const StatCard *card : cards.findChildren<StatCard *>())
            QCOMPARE(card->y(), 0); // in one row
        const auto labels = header.findChildren<ElidedLabel *>();
        const auto buttons = header.findChildren<QToolButton *>();
        QCOMPARE(labels.size(), 3); // name, state, what was asked for
        for (const QToolButton *button : buttons)
            QVERIFY(!button->isVisible() ||
                    labels[1]->y() > button->geometry().bottom());     // the state has the whole width
        header.setInForce(2, R"({"parallel": {"strategy": "none"}})"); // of an attempt that this is not
        QVERIFY(!labels[2]->text().contains(QLatin1String("none")));
        header.setInForce(1, "of another version");
        header.setInForce(1, R"({"parallel": {"ranks": 2, "strategy": "none"}})");
        QCOMPARE(labels[2]->text(), QStringLiteral("· 2 ranks · none"));
        QCOMPARE(buttons[0]->toolButtonStyle(), Qt::ToolButtonTextBesideIcon);
        constexpr int kBesideInspectorToo = 340;
        QVERIFY(header.minimumSizeHint().width() <= kBesideInspectorToo);
        header.resize(kBesideInspectorToo, header.height());
        QCOMPARE(buttons[0]->toolButtonStyle(), Qt::ToolButtonIconOnly);
        QTRY_VERIFY(std::ranges::all_of(buttons, [&header](const QToolButton *button) {
            return !button->isVisible() || button->geometry().right() < header.width();
        }));
    }

    void aLostRecordingIsSaid()
    {
        test::TemporaryFolder temporary;
        run::RunSummary run{makeRun(temporary.path() / "run", RunState::Running, 1), {}, {}, {}};
        RecordingReader reader;
        Selection selection;
        QWidget window;
        RunCommands commands(&window);
        LivePage page({reader, selection}, commands);
        const auto labels = page.findChildren<QLabel *>();
        const auto problem = std::find_if(labels.begin(), labels.end(), [](const QLabel *label) {
            return label->accessibleName() == QLatin1String("Problem with the recording");
        });
        QVERIFY(problem != labels.end());
        page.setRun(&run);
        QVERIFY((*problem)->isHidden());
        run.status.recordingProblem = "Rank 1: the disk is full";
        page.setRun(&run);
        QVERIFY(!(*problem)->isHidden());
        QCOMPARE((*problem)->text(), QStringLiteral("Rank 1: the disk is full"));
        page.setRun(nullptr);
        QVERIFY((*problem)->isHidden());
    }

    void manySamplesAreThinnedToTheirPeaks()
    {
        auto catalog = std::make_shared<store::Catalog>();
        catalog->processes.resize(1);
        catalog->processes[0].rank = 0;
        LiveDelta delta;
        delta.catalog = catalog;
        store::MemoryColumns memory;
        memory.process = 0;
        const size_t count = LiveSeries::kMaxSamples * 5;
        for (size_t i = 0; i < count; ++i) {
            memory.timeNs.push_back(static_cast<int64_t>(i) * 1000);
            const int64_t bytes = i == 7777 ? 1000000 : static_cast<int64_t>(i % 100);
            for (auto &column : memory.categoryBytes)
                column.push_back(0);
            memory.categoryBytes[0].back() = bytes;
            memory.roundingBytes.push_back(0);
            memory.allocatedBytes.push_back(bytes);
            memory.reservedBytes.push_back(2000000);
            memory.processUsedBytes.push_back(-1);
        }
        delta.memory.push_back(memory);
        LiveSeries series;
        series.add(delta);
        const ChartData data = series.memory(0);
        QVERIFY(data.x.size() <= LiveSeries::kMaxSamples);
        QVERIFY(std::is_sorted(data.x.begin(), data.x.end()));
        QCOMPARE(*std::max_element(data.columns[0].begin(), data.columns[0].end()), 1000000.0);
        QVERIFY(!series.highest(0, LiveSeries::kProcessUsed));
        QCOMPARE(series.highest(0, LiveSeries::kReserved), std::optional(2000000.0));
        QVERIFY(series.usedCategories()[0]);
        QVERIFY(!series.usedCategories()[1]);
    }

    void killReachesARunThatAnswersNothing()
    {
        test::TemporaryFolder temporary;
        HungRun run(temporary.path() / "run");
        QThreadPool::globalInstance()->setMaxThreadCount(1);
        QWidget window;
        window.show();
        auto commands = std::make_unique<RunCommands>(&window);
        commands->setRun(fromPath(run.folder.root()), run.status);
        commands->pauseAction()->trigger();
        QTRY_VERIFY(run.got("pause"));
        commands->stopAction()->trigger();
        QTRY_VERIFY(run.got("stop"));
        commands->killAction()->trigger();
        auto *question = window.findChild<QMessageBox *>();
        QVERIFY(question);
        for (QAbstractButton *button : question->buttons()) {
            if (question->buttonRole(button) == QMessageBox::DestructiveRole)
                button->click();
        }
        QTRY_VERIFY2(run.got(std::string(control::toText(control::RequestKind::StopNow)).c_str()),
                     qPrintable(run.received.join(u'|')));
        // Qt's pool stays free for others, and nobody waits ten minutes for the window to close.
        QVERIFY(QThreadPool::globalInstance()->tryStart([] {}));
        QElapsedTimer closing;
        closing.start();
        commands.reset();
        QVERIFY2(closing.elapsed() < 5000, qPrintable(QString::number(closing.elapsed())));
        QThreadPool::globalInstance()->setMaxThreadCount(QThread::idealThreadCount());
    }

    void resumeKnowsFromWhere()
    {
        QWidget window;
        RunCommands commands(&window);
        QSignalSpy wanted(&commands, &RunCommands::resumeWanted);
        QAction *resume = commands.resumeAction();
        run::RunStatus status;
        status.state = RunState::Running;
        status.step = 40;
        status.steps = 100;
        commands.setRun(QStringLiteral("/runs/a"), status);
        QVERIFY(!resume->isEnabled());
        status.state = RunState::Failed;
        commands.setRun(QStringLiteral("/runs/a"), status);
        QVERIFY(!resume->isEnabled());
        QVERIFY(resume->toolTip().contains(QLatin1String("no checkpoint")));
        status.checkpointStep = 25; // told after the state
        commands.setRun(QStringLiteral("/runs/a"), status);
        QVERIFY(resume->isEnabled());
        QVERIFY(resume->toolTip().contains(QLatin1String("step 25")));
        resume->trigger();
        QCOMPARE(wanted.count(), 1);
        QCOMPARE(wanted[0][0].toString(), QStringLiteral("/runs/a"));
        commands.setResuming(QStringLiteral("/runs/a"));
        QVERIFY(!resume->isEnabled()); // not twice
        commands.setResuming({});
        status.state = RunState::Done;
        commands.setRun(QStringLiteral("/runs/a"), status);
        QVERIFY(resume->isEnabled()); // stopped before its end
        status.step = 100;
        commands.setRun(QStringLiteral("/runs/a"), status);
        QVERIFY(!resume->isEnabled());
        QVERIFY(resume->toolTip().contains(QLatin1String("All of its 100 steps")));
    }

    void markersTellWhatWasDoneOnce()
    {
        Selection selection;
        LiveCharts charts(selection);
        const auto event = [](double seconds, store::Index teller, EventKind kind, const char *text,
                              const char *detailJson = "") {
            store::EventInfo info;
            info.timeNs = static_cast<int64_t>(seconds * 1e9);
            info.process = teller;
            info.kind = kind;
            info.text = text;
            info.detailJson = detailJson;
            return info;
        };
        const char *none = R"({"parallel.strategy":{"from":"full","to":"none"}})";
        const char *several = R"({"unit 'block.1.*': strategy":{"from":"none","to":"full"},)"
                              R"("memory.recompute":{"from":"off","to":"block"}})";
        constexpr store::Index kSupervisor = 2;
        charts.setEvents({event(10, kSupervisor, EventKind::Command, "pause"),
                          event(10.1, 0, EventKind::Command, "Paused after step 15"),
                          event(11, kSupervisor, EventKind::Command, "unpause"),
                          event(11.1, 0, EventKind::Command, "Going on after step 15"),
                          event(12, kSupervisor, EventKind::Command, "stop"),
                          event(12.4, 0, EventKind::Checkpoint, "Checkpoint of step 19 in 60.9 ms"),
                          event(12.5, kSupervisor, EventKind::Checkpoint, "checkpoint of step 19"),
                          event(30, kSupervisor, EventKind::Checkpoint, "checkpoint of step 29"),
                          event(40, kSupervisor, EventKind::Command, "set parallel.strategy: full → none"),
                          event(40.1, 0, EventKind::Toggle, "parallel.strategy: full → none", none),
                          event(40.1, 1, EventKind::Toggle, "parallel.strategy: full → none", none),
                          event(40.5, 0, EventKind::Toggle, "unit 'block.1.*': strategy: …", several),
                          event(40.9, 1, EventKind::Toggle, "parallel.strategy: full → none", none), // again
                          event(40.9, 0, EventKind::Toggle, "parallel.strategy: full → none", none)});
        QStringList names;
        for (const auto &[x, name] : charts.findChild<Chart *>()->markers().markers())
            names << name;
        QCOMPARE(names, (QStringList{QStringLiteral("Pause"), QStringLiteral("Unpause"), QStringLiteral("Stop"),
                                     QStringLiteral("Checkpoint"), QStringLiteral("Checkpoint"),
                                     QStringLiteral("strategy → none"), QStringLiteral("block.1.*: strategy → full +1"),
                                     QStringLiteral("strategy → none")}));
    }

    void aFailedRunIsShownWithoutItsRecording()
    {
        test::TemporaryFolder temporary;
        const run::RunFolder folder = makeRun(temporary.path() / "run", RunState::Failed, 1);
        std::filesystem::create_directories(temporary.path() / "run" / "attempt-1");
        std::ofstream(temporary.path() / "run" / "attempt-1" / "rank-0.sqlite") << "this is no database, but a text\n";
        const run::RunSummary summary = run::summarize(folder, realtimeNs());
        RecordingReader reader;
        Selection selection;
        QWidget window;
        RunCommands commands(&window);
        LivePage live({reader, selection}, commands);
        LogsPage logs({reader, selection});
        QSignalSpy failed(&reader, &RecordingReader::failed);
        live.setRun(&summary);
        logs.setRun(&summary);
        reader.open(fromPath(folder.root()));
        QVERIFY(failed.wait(test::kPatienceMs));
        QCOMPARE(live.face(), Page::Face::Content);
        QVERIFY(logs.face() != Page::Face::Error);
        const auto labels = live.findChildren<QLabel *>();
        QVERIFY(std::any_of(labels.begin(), labels.end(), [](const QLabel *label) {
            return label->text().contains(QLatin1String("rank-0.sqlite")) && label->isVisibleTo(label->parentWidget());
        }));
        // Without a run there is nothing else to show.
        live.setRun(nullptr);
        reader.open(fromPath(temporary.path() / "run" / "attempt-1" / "rank-0.sqlite"));
        QVERIFY(failed.wait(test::kPatienceMs));
        QCOMPARE(live.face(), Page::Face::Error);
    }

    void eventsStandNewestFirst()
    {
        store::Catalog catalog;
        catalog.processes.resize(2);
        catalog.processes[1].rank = 1;
        EventsModel model;
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.add({{.process = 0, .timeNs = 1'000'000'000, .kind = EventKind::Command, .text = "pause"}}, catalog);
        model.add({{.process = 1, .timeNs = 61'000'000'000, .step = 7, .kind = EventKind::Nan, .text = "loss"}},
                  catalog);
        QCOMPARE(model.rowCount(), 2);
        QCOMPARE(model.index(0, EventsModel::Time).data().toString(), QStringLiteral("1:01"));
        QCOMPARE(model.index(0, EventsModel::Who).data().toString(), QStringLiteral("Rank 1"));
        QCOMPARE(model.index(1, EventsModel::Who).data().toString(), QStringLiteral("Supervisor"));
        QCOMPARE(model.eventAt(0).step, std::optional<int64_t>(7));
    }

    void logTailFollowsAndKeepsCharactersWhole()
    {
        test::TemporaryFolder temporary;
        QFile log(fromPath(temporary.path() / "rank-0.log"));
        LogTail tail;
        QString text;
        QSignalSpy failed(&tail, &LogTail::failed);
        connect(&tail, &LogTail::added, this, [&text](const QString &more) { text += more + u'\n'; });
        connect(&tail, &LogTail::reset, this, [&text] { text.clear(); });
        tail.follow(log.fileName());
        QVERIFY(failed.wait(test::kPatienceMs)); // not there yet, and it says so
        QVERIFY(log.open(QIODevice::WriteOnly | QIODevice::Unbuffered));
        log.write("first\nhalf of an \xc3");
        QTRY_COMPARE(text, QStringLiteral("first\n"));
        log.write("\xa4\nlast\n");
        QTRY_COMPARE(text, QStringLiteral("first\nhalf of an ä\nlast\n"));
        log.resize(0);
        log.seek(0);
        log.write("anew\n");
        QTRY_COMPARE(text, QStringLiteral("anew\n"));
    }

    void failureCardSaysWhoAndWhatToDo()
    {
        run::RunStatus status;
        status.state = RunState::Failed;
        status.failure = run::RunFailure{.rank = 1, .signal = SIGKILL, .exitCode = {}, .text = ""};
        QVERIFY(FailureCard::headline(status).contains(QLatin1String("Rank 1")));
        QVERIFY(FailureCard::headline(status).contains(QLatin1String("SIGKILL")));
        QVERIFY(FailureCard::advice(status).contains(QLatin1String("memory")));
        status.checkpointStep = 40;
        QVERIFY(FailureCard::advice(status).contains(QLatin1String("step 40")));
        status.failure->signal.reset();
        status.failure->text = "CUDA out of memory. Tried to allocate 2 GiB";
        QVERIFY(FailureCard::advice(status).contains(QLatin1String("micro-batch")));
        status.state = RunState::Lost;
        QVERIFY(FailureCard::headline(status).contains(QLatin1String("lost")));
    }

    void logsAfterAMissingRankAreListed()
    {
        test::TemporaryFolder temporary;
        const run::RunFolder folder = makeRun(temporary.path() / "run", RunState::Done, 1);
        std::filesystem::create_directories(folder.logsFolder(1));
        for (const int rank : {0, 2, 10})
            std::ofstream(folder.logFile(1, rank)) << "rank " << rank << "\n";
        std::ofstream(folder.logsFolder(1) / "rank-x.log") << "no rank\n";
        const run::RunSummary summary = run::summarize(folder, realtimeNs());
        RecordingReader reader;
        Selection selection;
        LogsPage logs({reader, selection});
        logs.setRun(&summary);
        auto *choice = logs.findChild<QComboBox *>();
        QTRY_COMPARE(choice->count(), 3);
        QCOMPARE(choice->itemText(1), QStringLiteral("rank 2"));
        QCOMPARE(choice->itemText(2), QStringLiteral("rank 10"));
    }

    void aRunWithoutLogsSaysWhy()
    {
        test::TemporaryFolder temporary;
        RecordingReader reader;
        Selection selection;
        LogsPage logs({reader, selection});
        run::RunSummary summary = run::summarize(makeRun(temporary.path() / "run", RunState::Done, 1), realtimeNs());
        logs.setRun(&summary);
        QTRY_VERIFY2(logs.noticeText().contains(QLatin1String("torchrun")), qPrintable(logs.noticeText()));
        summary.status.state = RunState::Running;
        summary.status.ranks = {{.rank = 0, .pid = 1, .state = RunState::Starting}};
        logs.setRun(&summary);
        QTRY_VERIFY2(logs.noticeText().contains(QLatin1String("as soon as")), qPrintable(logs.noticeText()));
    }

    void theStatusLinesDotsFollowTheTheme()
    {
        RunStatusLine line;
        line.setPalette(lightPalette());
        run::RunStatus status;
        status.state = RunState::Running;
        status.ranks = {{.rank = 0, .pid = 1, .state = RunState::Running}};
        line.setRun(&status, nullptr);
        const auto text = [&line] { return line.findChild<QLabel *>()->text(); };
        const QString light = text();
        QVERIFY(light.contains(Colors::of(lightPalette()).state(RunState::Running).name()));
        line.setPalette(darkPalette());
        QVERIFY2(text().contains(Colors::of(darkPalette()).state(RunState::Running).name()), qPrintable(text()));
    }

    void lastLinesOfALongLog()
    {
        test::TemporaryFolder temporary;
        const auto path = temporary.path() / "log";
        QFile log(fromPath(path));
        QVERIFY(log.open(QIODevice::WriteOnly));
        for (int i = 0; i < 5000; ++i)
            log.write(QByteArray::number(i) + "\n");
        log.close();
        QCOMPARE(lastLines(path, 3), QStringLiteral("4997\n4998\n4999"));
        QCOMPARE(lastLines(temporary.path() / "none", 3), QString());
    }

    void statusLineCountsDown()
    {
        run::RunStatus status;
        status.state = RunState::Running;
        status.step = 214;
        status.steps = 1000;
        status.tokensPerSecond = 18200;
        status.stepNs = 1'000'000'000;
        QCOMPARE(RunStatusLine::progressText(status), QStringLiteral("step 214/1000 · 18.2 k tok/s · ETA 13 min 06 s"));
    }
};

QTEST_MAIN(UiMonitorTest)
#include "ui_monitor_test.moc"
