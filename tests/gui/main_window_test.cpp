// SPDX-License-Identifier: Apache-2.0
#include "app/gui/main_window.h"
#include "core/base/clock.h"
#include "core/run/run_lock.h"
#include "core/run/run_status.h"
#include "recording_fixture.h"
#include "tests/support/patience.h"
#include "ui/common/page.h"
#include "ui/common/paths.h"
#include "ui/common/theme.h"
#include "ui/monitor/run_list_view.h"

#include <QAbstractSpinBox>
#include <QApplication>
#include <QComboBox>
#include <QDialog>
#include <QDockWidget>
#include <QElapsedTimer>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QLockFile>
#include <QMenuBar>
#include <QSettings>
#include <QSortFilterProxyModel>
#include <QTemporaryDir>
#include <QTest>
#include <QThreadPool>
#include <QTimer>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>

using namespace shardscope;

class MainWindowTest : public QObject
{
    Q_OBJECT

    QTemporaryDir m_folder;
    std::unique_ptr<ui::Theme> m_theme;
    std::unique_ptr<QSettings> m_settings;
    std::unique_ptr<gui::MainWindow> m_window;

    QString runs() const { return m_folder.path() + QStringLiteral("/runs"); }

    QAction *action(const QString &text) const
    {
        const auto actions = m_window->findChildren<QAction *>();
        const auto found = std::find_if(actions.begin(), actions.end(),
                                        [&text](QAction *one) { return QString(one->text()).remove(u'&') == text; });
        return found == actions.end() ? nullptr : *found;
    }

private Q_SLOTS:
    void initTestCase()
    {
        qputenv("XDG_CACHE_HOME", m_folder.path().toLocal8Bit());
        const run::RunFolder folder(ui::toPath(runs() + QStringLiteral("/15m on two ranks")));
        QVERIFY(test::writeFixtureRecording(folder.root()).has_value());
        run::RunStatus status;
        status.state = RunState::Failed;
        status.attempt = 1;
        status.step = 4;
        status.steps = 10;
        status.loss = 5.5;
        status.failure = run::RunFailure{.rank = 1, .signal = 9, .exitCode = {}, .text = "killed"};
        QVERIFY(run::writeStatus(folder, status).has_value());
    }

    void init()
    {
        m_theme = std::make_unique<ui::Theme>();
        m_settings =
            std::make_unique<QSettings>(m_folder.path() + QStringLiteral("/settings.ini"), QSettings::IniFormat);
        m_window = std::make_unique<gui::MainWindow>(*m_theme, *m_settings, runs());
        m_window->resize(1280, 800);
        m_window->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_window.get(), test::kPatienceMs));
    }

    void cleanup()
    {
        m_window.reset();
        m_settings.reset();
        m_theme.reset();
    }

    void opensARunFromTheList()
    {
        auto *view = m_window->findChild<ui::RunListView *>();
        auto *list = view->findChild<QListView *>();
        QTRY_COMPARE(list->model()->rowCount(), 1);
        QTest::mouseClick(list->viewport(), Qt::LeftButton, {}, list->visualRect(list->model()->index(0, 0)).center());
        QTRY_COMPARE(m_window->windowTitle(), QStringLiteral("15m on two ranks"));
        const auto labels = m_window->findChildren<QLabel *>();
        QTRY_VERIFY(std::any_of(labels.begin(), labels.end(), [](const QLabel *label) {
            return label->text().contains(QLatin1String("SIGKILL")) && label->isVisible();
        }));
        QVERIFY(!action(QStringLiteral("Pause"))->isEnabled());
        QVERIFY(!action(QStringLiteral("Stop"))->isEnabled());
    }

    void whatIsOpenedLastStaysOpenHoweverLongTheOneBeforeTook()
    {
        // Its state comes from a pipe: it is known when this test writes it.
        const run::RunFolder slow(ui::toPath(m_folder.path() + QStringLiteral("/elsewhere/slow")));
        std::filesystem::create_directories(slow.root());
        QCOMPARE(::mkfifo(slow.stateFile().c_str(), 0600), 0);
        m_window->open(ui::fromPath(slow.root()));
        m_window->open(QStringLiteral("15m on two ranks"));
        QTRY_COMPARE(m_window->windowTitle(), QStringLiteral("15m on two ranks"));
        run::RunStatus status;
        status.state = RunState::Done;
        const run::RunFolder written(slow.root() / "written");
        std::filesystem::create_directories(written.root());
        QVERIFY(run::writeStatus(written, status).has_value());
        {
            std::ofstream pipe(slow.stateFile()); // opens when the other end is there
            std::filesystem::rename(written.stateFile(), slow.stateFile());
            pipe << run::toJson(status);
        }
        QVERIFY(QThreadPool::globalInstance()->waitForDone(20'000));
        QCoreApplication::processEvents();
        QCOMPARE(m_window->windowTitle(), QStringLiteral("15m on two ranks"));
        std::filesystem::remove_all(slow.root());
    }

    void filterHidesRuns()
    {
        auto *view = m_window->findChild<ui::RunListView *>();
        auto *list = view->findChild<QListView *>();
        QTRY_COMPARE(list->model()->rowCount(), 1);
        QTest::keyClicks(view->filterField(), QStringLiteral("nothing like it"));
        QCOMPARE(list->model()->rowCount(), 0);
        QVERIFY(!list->isVisible());
        view->filterField()->setText(QStringLiteral("TWO"));
        QCOMPARE(list->model()->rowCount(), 1);
    }

    void remembersRunAndPage()
    {
        m_window->open(QStringLiteral("15m on two ranks")); // by its name
        QTRY_COMPARE(m_window->windowTitle(), QStringLiteral("15m on two ranks"));
        m_window->showPage(QStringLiteral("logs"));
        m_window->close();
        cleanup();
        init();
        m_window->openLast();
        QTRY_COMPARE(m_window->windowTitle(), QStringLiteral("15m on two ranks"));
        QVERIFY(action(QStringLiteral("Logs"))->isChecked());
    }

    void backGoesToThePageBefore()
    {
        m_window->showPage(QStringLiteral("live"));
        m_window->showPage(QStringLiteral("logs"));
        action(QStringLiteral("Back"))->trigger();
        QVERIFY(action(QStringLiteral("Live"))->isChecked());
        action(QStringLiteral("Forward"))->trigger();
        QVERIFY(action(QStringLiteral("Logs"))->isChecked());
    }

    void saysWhatItCannotOpen()
    {
        m_window->open(m_folder.path() + QStringLiteral("/settings.ini"));
        const auto labels = m_window->findChildren<QLabel *>();
        QTRY_VERIFY(std::any_of(labels.begin(), labels.end(), [](const QLabel *label) {
            return label->text().contains(QLatin1String("neither a run's folder nor a recording"));
        }));
    }

    void everyEntryFieldHasAName()
    {
        for (const QWidget *widget : m_window->findChildren<QWidget *>()) {
            if (!qobject_cast<const QLineEdit *>(widget) && !qobject_cast<const QComboBox *>(widget))
                continue;
            if (qobject_cast<const QComboBox *>(widget->parentWidget()) ||
                qobject_cast<const QAbstractSpinBox *>(widget->parentWidget()))
                continue;
            const auto labels = m_window->findChildren<QLabel *>();
            const bool hasBuddy = std::any_of(labels.begin(), labels.end(),
                                              [widget](const QLabel *label) { return label->buddy() == widget; });
            QVERIFY2(hasBuddy || !widget->accessibleName().isEmpty(), qPrintable(widget->objectName()));
        }
    }

    void noShortcutIsTakenTwice()
    {
        QHash<QString, QString> seen;
        for (const QAction *one : m_window->findChildren<QAction *>()) {
            const QString keys = one->shortcut().toString();
            if (keys.isEmpty() || one->shortcutContext() == Qt::WidgetWithChildrenShortcut ||
                one->shortcutContext() == Qt::WidgetShortcut)
                continue;
            QVERIFY2(!seen.contains(keys), qPrintable(keys + QStringLiteral(": ") + one->text() + u'/' + seen[keys]));
            seen.insert(keys, one->text());
        }
        QVERIFY(seen.contains(QStringLiteral("Ctrl+K")));
        QVERIFY(seen.contains(QStringLiteral("Ctrl+1")));
    }

    void aLockedSettingsFileHoldsNothingUp()
    {
        QLockFile lock(m_settings->fileName() + QStringLiteral(".lock"));
        QVERIFY(lock.lock()); // as a slow disk would
        qint64 longestMs = 0;
        QElapsedTimer sinceLast;
        QTimer pulse;
        connect(&pulse, &QTimer::timeout, this, [&] { longestMs = std::max(longestMs, sinceLast.restart()); });
        sinceLast.start();
        pulse.start(5);
        for (const char *page : {"logs", "live", "memory"}) {
            m_window->showPage(QString::fromLatin1(page));
            QTest::qWait(500);
        }
        action(QStringLiteral("New run…"))->trigger();
        QTest::qWait(1000);
        QVERIFY(!m_window->findChildren<QDialog *>().isEmpty());
        qDeleteAll(m_window->findChildren<QDialog *>());
        lock.unlock();
        QVERIFY2(longestMs < 10'000, qPrintable(QString::number(longestMs))); // QSettings would wait for the lock
    }

    void aSpanClickedOnASmallScreenShowsTheInspectorOnce()
    {
        m_window.reset();
        QFile::remove(m_settings->fileName());
        m_settings->clear();
        QSettings fresh(m_folder.path() + QStringLiteral("/fresh.ini"), QSettings::IniFormat);
        m_window = std::make_unique<gui::MainWindow>(*m_theme, fresh, runs());
        m_window->show();
        auto *dock = m_window->findChild<QDockWidget *>(QStringLiteral("inspector"));
        if (dock->isVisible())
            QSKIP("this screen has room for the inspector from the start");
        const auto inspectSomething = [this] {
            const auto pages = m_window->findChildren<ui::Page *>();
            Q_EMIT pages.first()->inspect({QStringLiteral("a span"), {}, {}});
        };
        inspectSomething();
        QVERIFY(dock->isVisible());
        dock->close();
        inspectSomething();
        QVERIFY(!dock->isVisible()); // the user closed it
    }

    void fitsASmallScreen()
    {
        const QSize least = m_window->minimumSizeHint();
        QVERIFY2(least.width() <= 960 && least.height() <= 600,
                 qPrintable(QStringLiteral("%1x%2").arg(least.width()).arg(least.height())));
    }
};

QTEST_MAIN(MainWindowTest)
#include "main_window_test.moc"
