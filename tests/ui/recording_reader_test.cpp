// SPDX-License-Identifier: Apache-2.0
#include "recording_fixture.h"
#include "tests/support/patience.h"
#include "ui/common/paths.h"
#include "ui/common/recording_reader.h"

#include <QSignalSpy>
#include <QTest>
#include <atomic>

using namespace shardscope;
using namespace shardscope::ui;

class RecordingReaderTest : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void answersInTheReceiversThread()
    {
        test::TemporaryFolder folder;
        const auto run = folder.path() / "a run";
        QVERIFY(test::writeFixtureRecording(run).has_value());
        RecordingReader reader;
        QSignalSpy opened(&reader, &RecordingReader::opened);
        reader.open(fromPath(run));
        QVERIFY(reader.isBusy());
        QVERIFY(opened.wait(test::kPatienceMs));
        QCOMPARE(reader.catalog()->attempts.size(), size_t(1));
        std::optional<size_t> steps;
        QThread *readerThread = nullptr;
        QThread *answerThread = nullptr;
        reader.request<std::vector<store::StepInfo>>(
            this, "steps",
            [&](store::Recording &recording,
                const store::CancelToken &) -> Result<RecordingReader::Snapshot<std::vector<store::StepInfo>>> {
                readerThread = QThread::currentThread();
                auto found = recording.steps(recording.catalog()->rankProcess(1, 0));
                if (!found)
                    return tl::unexpected<Error>(found.error());
                return std::make_shared<const std::vector<store::StepInfo>>(std::move(*found));
            },
            [&](const auto &answer) {
                answerThread = QThread::currentThread();
                steps = (*answer)->size();
            });
        QTRY_VERIFY(steps.has_value());
        QCOMPARE(*steps, size_t(4));
        QCOMPARE(answerThread, thread());
        QVERIFY(readerThread != thread());
        QVERIFY(!reader.isBusy());
    }

    void newerRequestCancelsOlder()
    {
        test::TemporaryFolder folder;
        QVERIFY(test::writeFixtureRecording(folder.path() / "run").has_value());
        RecordingReader reader;
        QSignalSpy opened(&reader, &RecordingReader::opened);
        reader.open(fromPath(folder.path() / "run"));
        QVERIFY(opened.wait(test::kPatienceMs));
        std::atomic<bool> running = false;
        std::atomic<bool> wasCancelled = false;
        QStringList answers;
        const auto done = [&answers](const Result<RecordingReader::Snapshot<QString>> &answer) {
            answers << (answer ? **answer : QString::fromStdString(answer.error().text));
        };
        reader.request<QString>(
            this, "channel",
            [&](store::Recording &, const store::CancelToken &cancel) -> Result<RecordingReader::Snapshot<QString>> {
                running = true;
                while (!cancel.cancelled())
                    QThread::msleep(1);
                wasCancelled = true;
                return fail("cancelled");
            },
            done);
        QTRY_VERIFY(running);
        reader.request<QString>(
            this, "channel",
            [](store::Recording &, const store::CancelToken &) -> Result<RecordingReader::Snapshot<QString>> {
                return std::make_shared<const QString>(QStringLiteral("newer"));
            },
            done);
        QTRY_COMPARE(answers, QStringList{QStringLiteral("newer")});
        QVERIFY(wasCancelled);
    }

    void receiverThatIsGoneGetsNothing()
    {
        test::TemporaryFolder folder;
        QVERIFY(test::writeFixtureRecording(folder.path() / "run").has_value());
        RecordingReader reader;
        QSignalSpy opened(&reader, &RecordingReader::opened);
        reader.open(fromPath(folder.path() / "run"));
        QVERIFY(opened.wait(test::kPatienceMs));
        bool called = false;
        {
            QObject receiver;
            reader.request<int>(
                &receiver, "x",
                [](store::Recording &, const store::CancelToken &) -> Result<RecordingReader::Snapshot<int>> {
                    return std::make_shared<const int>(1);
                },
                [&called](const auto &) { called = true; });
        }
        QTRY_VERIFY(!reader.isBusy());
        QVERIFY(!called);
    }

    void saysWhyItCannotOpen()
    {
        test::TemporaryFolder folder;
        RecordingReader reader;
        QSignalSpy failed(&reader, &RecordingReader::failed);
        reader.open(fromPath(folder.path() / "nothing"));
        QVERIFY(failed.wait(test::kPatienceMs));
        QVERIFY2(failed[0][0].toString().contains(QLatin1String("nothing")), qPrintable(failed[0][0].toString()));
        QVERIFY(!reader.isOpen());
    }

    void followsALiveRecording()
    {
        test::TemporaryFolder folder;
        const auto run = folder.path() / "run";
        auto live = test::LiveFixture::start(run);
        QVERIFY(live.has_value());
        RecordingReader reader;
        QSignalSpy opened(&reader, &RecordingReader::opened);
        QSignalSpy changed(&reader, &RecordingReader::changed);
        reader.setLive(true);
        reader.open(fromPath(run));
        QVERIFY(opened.wait(test::kPatienceMs));
        QVERIFY(live->writeStep().has_value());
        QVERIFY(changed.wait(test::kPatienceMs));
        const auto change = changed.last()[0].value<RecordingChange>();
        QVERIFY(!change.tails.empty());
        QVERIFY(change.lastEndNs >= change.firstStartNs);
        QVERIFY(live->finish().has_value());
        QTRY_VERIFY(reader.catalog()->finished);
    }

    void aFolderThatIsAwayForAMomentIsNoFailure()
    {
        test::TemporaryFolder folder;
        const auto run = folder.path() / "run", away = folder.path() / "away";
        auto live = test::LiveFixture::start(run);
        QVERIFY(live.has_value());
        RecordingReader reader;
        QSignalSpy opened(&reader, &RecordingReader::opened);
        QSignalSpy changed(&reader, &RecordingReader::changed);
        QSignalSpy failed(&reader, &RecordingReader::failed);
        reader.setLive(true);
        reader.open(fromPath(run));
        QVERIFY(opened.wait(test::kPatienceMs));
        std::filesystem::rename(run, away);
        QTest::qWait(700); // a poll
        std::filesystem::rename(away, run);
        QVERIFY(live->writeStep().has_value());
        QVERIFY(changed.wait(test::kPatienceMs));
        QCOMPARE(failed.count(), 0);
        // For longer it is one, told once; and it is read on when the folder is back.
        std::filesystem::rename(run, away);
        QVERIFY(failed.wait(test::kPatienceMs));
        const qsizetype before = changed.count();
        QTest::qWait(1200);
        QCOMPARE(failed.count(), 1);
        std::filesystem::rename(away, run);
        QTRY_VERIFY(changed.count() > before);
    }

    void closingCancelsAndSaysSo()
    {
        test::TemporaryFolder folder;
        QVERIFY(test::writeFixtureRecording(folder.path() / "run").has_value());
        RecordingReader reader;
        QSignalSpy opened(&reader, &RecordingReader::opened);
        QSignalSpy closed(&reader, &RecordingReader::closed);
        reader.open(fromPath(folder.path() / "run"));
        QVERIFY(opened.wait(test::kPatienceMs));
        reader.close();
        QCOMPARE(closed.count(), 1);
        QVERIFY(!reader.isOpen());
        QVERIFY(!reader.catalog());
    }
};

QTEST_GUILESS_MAIN(RecordingReaderTest)
#include "recording_reader_test.moc"
