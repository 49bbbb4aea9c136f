// SPDX-License-Identifier: Apache-2.0
#include "core/config/registry.h"
#include "core/run/run_status.h"
#include "core/shapes/known_models.h"
#include "tests/support/patience.h"
#include "ui/common/paths.h"
#include "ui/launch/command_line.h"
#include "ui/launch/field.h"
#include "ui/launch/launch_check.h"
#include "ui/launch/new_run_dialog.h"
#include "ui/launch/run_form.h"
#include "ui/launch/run_launcher.h"

#include <QComboBox>
#include <QDir>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QLocale>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <unistd.h>

using namespace shardscope;
using namespace shardscope::ui;

class UiLaunchTest : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { QLocale::setDefault(QLocale(QLocale::German)); }

    void commandLineSaysWhatTheFormSays()
    {
        config::RunConfiguration configuration;
        configuration.model.preset = "tiny";
        configuration.parallel.ranks = 2;
        configuration.parallel.shareDevice = true;
        configuration.optimizer.learningRate = 0.0003;
        configuration.run.name = "not repeated";
        const QStringList arguments = runArguments(configuration, QStringLiteral("/runs/a b"));
        QCOMPARE(arguments.mid(0, 3),
                 (QStringList{QStringLiteral("run"), QStringLiteral("--out"), QStringLiteral("/runs/a b")}));
        const QString line = shellLine(QStringLiteral("shardscope-cli"), arguments);
        QVERIFY(line.contains(QLatin1String("--out '/runs/a b'")));
        QVERIFY(line.contains(QLatin1String("--preset tiny")));
        QVERIFY(line.contains(QLatin1String("--ranks 2")));
        QVERIFY(line.contains(QLatin1String("--share-device")));
        QVERIFY2(line.contains(QLatin1String("--set optimizer.learning_rate=0.0003")), qPrintable(line));
        QVERIFY(!line.contains(QLatin1String("not repeated")));
    }

    void shellQuotesWhatItMust()
    {
        QCOMPARE(shellQuoted(QStringLiteral("plain-1.5/x")), QStringLiteral("plain-1.5/x"));
        QCOMPARE(shellQuoted(QStringLiteral("it's")), QStringLiteral("'it'\\''s'"));
        QCOMPARE(shellQuoted(QStringLiteral("")), QStringLiteral("''"));
        QCOMPARE(shellQuoted(QStringLiteral("größe")), QStringLiteral("'größe'"));
    }

    void everyKeyOfTheRegistryIsInTheForm()
    {
        RunForm form(shapes::knownModels());
        for (const config::Key &key : config::keys())
            QVERIFY2(form.field(key.path), key.path.data());
        std::vector<config::Problem> problems;
        const config::RunConfiguration configuration = form.configuration(problems);
        QVERIFY2(problems.empty(), problems.empty() ? "" : problems.front().message.c_str());
        QVERIFY(config::changedKeys(configuration).empty());
    }

    void numbersAreReadInCNotationUnderAnyLocale()
    {
        RunForm form(shapes::knownModels());
        auto *rate = qobject_cast<QLineEdit *>(form.field("optimizer.learning_rate")->editor());
        rate->clear();
        QTest::keyClicks(rate, QStringLiteral("0.0003"));
        std::vector<config::Problem> problems;
        QCOMPARE(form.configuration(problems).optimizer.learningRate, 0.0003);
        QVERIFY(problems.empty());
        rate->setText(QStringLiteral("0,0003"));
        form.configuration(problems);
        QCOMPARE(problems.size(), size_t(1));
        // The words are those of --set.
        config::RunConfiguration other;
        QCOMPARE(problems[0].message, config::setKey(other, "optimizer.learning_rate", "0,0003").error().text);
    }

    void rulesForUnitsAreAlsoInTheForm()
    {
        RunForm form(shapes::knownModels());
        auto *rules = form.findChild<QPlainTextEdit *>();
        rules->setPlainText(QStringLiteral("*:kind=norm,strategy=grad_op\n\n  block.1.*:strategy=none  \n"));
        std::vector<config::Problem> problems;
        const config::RunConfiguration configuration = form.configuration(problems);
        QVERIFY(problems.empty());
        QCOMPARE(configuration.units.size(), size_t(2));
        const QString line =
            shellLine(QStringLiteral("shardscope-cli"), runArguments(configuration, QStringLiteral("/r")));
        QVERIFY2(line.contains(QLatin1String("--unit '*:kind=norm,strategy=grad_op' --unit 'block.1.*:strategy=none'")),
                 qPrintable(line));
        RunForm other(shapes::knownModels());
        other.setConfiguration(configuration);
        QCOMPARE(other.configuration(problems).units, configuration.units);
        rules->setPlainText(QStringLiteral("block.*:stratgy=none"));
        form.configuration(problems);
        QCOMPARE(problems.size(), size_t(1));
        QCOMPARE(problems[0].key, std::string("unit"));
        form.showProblems(problems);
        const auto labels = form.findChildren<QLabel *>();
        QVERIFY(std::any_of(labels.begin(), labels.end(), [](const QLabel *label) {
            return !label->isHidden() && label->text().contains(QLatin1String("Did you mean strategy?"));
        }));
    }

    void problemsStandUnderTheirField()
    {
        RunForm form(shapes::knownModels());
        form.show();
        form.showProblems({{"train.steps", "too many"}, {"train.seed", "negative"}});
        const auto labels = form.findChildren<QLabel *>();
        const auto shows = [&labels](const QString &text) {
            return std::any_of(labels.begin(), labels.end(),
                               [&](const QLabel *label) { return label->text() == text && label->isVisible(); });
        };
        QVERIFY(shows(QStringLiteral("too many")));
        QVERIFY(shows(QStringLiteral("negative"))); // below the fold, which opens
        form.showProblems({});
        QVERIFY(!shows(QStringLiteral("too many")));
    }

    void missingDataAndTakenFoldersAreTold()
    {
        QTemporaryDir folder;
        config::RunConfiguration configuration;
        configuration.data.path = (folder.path() + QStringLiteral("/no such file")).toStdString();
        LaunchFacts facts = lookAtDisk(configuration, 32000, folder.path() + QStringLiteral("/new"));
        QCOMPARE(facts.problems.size(), size_t(1));
        QCOMPARE(facts.problems[0].key, std::string("data.path"));
        QVERIFY(facts.problems[0].message.find("no such file") != std::string::npos);

        const QString text = written(folder, QStringLiteral("/text.txt"), QByteArray(20000, 'a'));
        configuration.data.path = text.toStdString();
        facts = lookAtDisk(configuration, 32000, folder.path()); // exists, and is not empty
        QCOMPARE(facts.problems.size(), size_t(1));
        QCOMPARE(facts.problems[0].key, std::string("run.name"));
        facts = lookAtDisk(configuration, 32000, folder.path() + QStringLiteral("/new"));
        QVERIFY(facts.problems.empty());
        QVERIFY(!facts.data.isEmpty());
    }

    void targetsWithoutAWeightAreToldAtTheirField()
    {
        QTemporaryDir folder;
        NewRunDialog dialog(folder.path() + QStringLiteral("/runs"));
        dialog.form()->field("lora.rank")->setText(QStringLiteral("8"));
        dialog.form()->field("lora.targets")->setText(QStringLiteral("atention.q"));
        QTRY_VERIFY(says(dialog, QStringLiteral("Did you mean attention.q?")));
        QVERIFY(!dialog.launchButton()->isEnabled());
        dialog.form()->field("lora.targets")->setText(QStringLiteral("attention.q"));
        QTRY_VERIFY(dialog.launchButton()->isEnabled());
        QVERIFY2(dialog.commandLine().contains(QLatin1String("--set lora.rank=8 --set lora.targets=attention.q")),
                 qPrintable(dialog.commandLine()));
    }

    void aModelFolderIsLookedAtInTheBackground()
    {
        QTemporaryDir folder;
        const QString text = written(folder, QStringLiteral("/text.txt"), QByteArray(20000, 'a'));
        NewRunDialog dialog(folder.path() + QStringLiteral("/runs"));
        dialog.form()->field("data.path")->setText(text);
        dialog.form()->field("model.path")->setText(folder.path());
        QTRY_VERIFY(says(dialog, QStringLiteral("config.json")));
        QVERIFY(!dialog.launchButton()->isEnabled());
        written(folder, QStringLiteral("/config.json"),
                R"({"model_type": "llama", "vocab_size": 300, "hidden_size": 8, "intermediate_size": 8,
                  "num_hidden_layers": 1, "num_attention_heads": 2})");
        dialog.form()->field("train.steps")->setText(QStringLiteral("21"));
        QTRY_VERIFY(dialog.launchButton()->isEnabled());
        QVERIFY(dialog.commandLine().contains(QLatin1String("--model")));
    }

    void aFolderInPlaceOfAFileIsSaid()
    {
        QTemporaryDir folder;
        QVERIFY(QDir(folder.path()).mkpath(QStringLiteral("model/config.json")));
        const QString text = written(folder, QStringLiteral("/text.txt"), QByteArray(20000, 'a'));
        NewRunDialog dialog(folder.path() + QStringLiteral("/runs"));
        dialog.form()->field("data.path")->setText(text);
        dialog.form()->field("model.path")->setText(folder.path() + QStringLiteral("/model"));
        QTRY_VERIFY_WITH_TIMEOUT(says(dialog, QStringLiteral("Is a directory")), 20000);
        QVERIFY(!dialog.launchButton()->isEnabled());
    }

    void launchIsOffWhileSomethingIsWrong()
    {
        QTemporaryDir folder;
        const QString text = written(folder, QStringLiteral("/text.txt"), QByteArray(20000, 'a'));
        NewRunDialog dialog(folder.path() + QStringLiteral("/runs"));
        dialog.form()->field("data.path")->setText(text);
        QVERIFY(!dialog.launchButton()->isEnabled()); // the data are not known yet
        QTRY_VERIFY(dialog.launchButton()->isEnabled());
        QVERIFY(dialog.commandLine().startsWith(QLatin1String("shardscope-cli run --out ")));
        dialog.form()->field("train.steps")->setText(QStringLiteral("-1"));
        QVERIFY(!dialog.launchButton()->isEnabled());
        dialog.form()->field("train.steps")->setText(QStringLiteral("20"));
        QTRY_VERIFY(dialog.launchButton()->isEnabled());
        dialog.form()->field("data.path")->setText(QStringLiteral("/nowhere/at all"));
        QTRY_VERIFY(says(dialog, QStringLiteral("/nowhere/at all")));
        QVERIFY(!dialog.launchButton()->isEnabled());
    }

    static QString written(const QTemporaryDir &folder, const QString &name, const QByteArray &text)
    {
        QFile file(folder.path() + name);
        if (!file.open(QIODevice::WriteOnly) || file.write(text) != text.size())
            qFatal("no file");
        return file.fileName();
    }

    static bool says(const NewRunDialog &dialog, const QString &words)
    {
        const QList<QLabel *> labels = dialog.findChildren<QLabel *>();
        return std::any_of(labels.begin(), labels.end(),
                           [&](const QLabel *label) { return label->text().contains(words); });
    }

    /// A stand-in for the command line: only what the launcher sees of it matters here.
    static QString script(const QTemporaryDir &folder, const QByteArray &body)
    {
        QFile file(folder.path() + QStringLiteral("/cli ") + QString::number(body.size()));
        if (!file.open(QIODevice::WriteOnly))
            qFatal("no script");
        file.write("#!/bin/sh\n" + body);
        file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
        return file.fileName();
    }

    void launcherTellsWhenTheRunIsThere()
    {
        QTemporaryDir folder;
        qputenv("XDG_CACHE_HOME", folder.path().toLocal8Bit());
        const QString run = folder.path() + QStringLiteral("/the run");
        RunLauncher launcher;
        QSignalSpy started(&launcher, &RunLauncher::started);
        const QDir launches(folder.path() + QStringLiteral("/shardscope/launches"));
        launcher.launch(script(folder, "echo 'the progress of the run'; echo 'a note' >&2; mkdir -p \"$1\"; ps -o sid= "
                                       "-p $$ > \"$1/sid\"; echo {} > \"$1/state.json\"; sleep 1"),
                        {run}, run);
        QVERIFY(launcher.isLaunching());
        QVERIFY(started.wait(test::kPatienceMs));
        QCOMPARE(started[0][0].toString(), run);
        QVERIFY(!launcher.isLaunching());
        QFile sid(run + QStringLiteral("/sid"));
        QVERIFY(sid.open(QIODevice::ReadOnly));
        QVERIFY(sid.readAll().trimmed().toLongLong() != getsid(0)); // a closed terminal does not reach it
        QVERIFY(launches.exists());
        QVERIFY(launches.entryList(QDir::Files).isEmpty()); // a run's line a second fills no file that nobody reads
    }

    void launcherWaitsForTheNextAttempt()
    {
        QTemporaryDir folder;
        qputenv("XDG_CACHE_HOME", folder.path().toLocal8Bit());
        const QString run = folder.path() + QStringLiteral("/the run");
        QVERIFY(QDir().mkpath(run));
        run::RunStatus status;
        status.state = RunState::Done;
        status.attempt = 1;
        QVERIFY(run::writeStatus(run::RunFolder(toPath(run)), status).has_value());
        RunLauncher launcher;
        QSignalSpy started(&launcher, &RunLauncher::started);
        const QString go = folder.path() + QStringLiteral("/go");
        launcher.launch(script(folder,
                               "while [ ! -e \"$2\" ]; do sleep 0.05; done; sed -i 's/\"attempt\":1/\"attempt\":2/' "
                               "\"$1/state.json\"; sleep 1"),
                        {run, go}, run, 1);
        QVERIFY(!started.wait(600)); // the run is there, but it is the old attempt
        QVERIFY(QFile(go).open(QIODevice::WriteOnly));
        QVERIFY(started.wait(test::kPatienceMs));
    }

    void aLaunchTellsHowFarItIsAndCanBeCancelled()
    {
        QTemporaryDir folder;
        qputenv("XDG_CACHE_HOME", folder.path().toLocal8Bit());
        const QString run = folder.path() + QStringLiteral("/run");
        RunLauncher launcher;
        QVERIFY(!launcher.cancel());
        QSignalSpy said(&launcher, &RunLauncher::said);
        QSignalSpy failed(&launcher, &RunLauncher::failed);
        launcher.launch(script(folder, "(echo first; echo 'Tokenising: 34 %') >&2; exec sleep 60"), {}, run);
        QTRY_VERIFY(!said.isEmpty() && said.last()[0] == QStringLiteral("Tokenising: 34 %"));
        QVERIFY(launcher.cancel());
        QVERIFY(failed.wait(test::kPatienceMs));
        QVERIFY(failed[0][0].toString().contains(QLatin1String("Cancelled")));
        QVERIFY(!launcher.isLaunching());
        // Even before the process is there.
        launcher.launch(script(folder, "exec sleep 61"), {}, run);
        QVERIFY(launcher.cancel());
        QVERIFY(failed.wait(test::kPatienceMs));
        QVERIFY(!launcher.isLaunching());
    }

    void launcherRepeatsWhatTheCommandLineSays()
    {
        QTemporaryDir folder;
        qputenv("XDG_CACHE_HOME", folder.path().toLocal8Bit());
        RunLauncher launcher;
        QSignalSpy failed(&launcher, &RunLauncher::failed);
        launcher.launch(script(folder, "echo 'shardscope-cli: no worker' >&2; exit 2"), {},
                        folder.path() + QStringLiteral("/run"));
        QVERIFY(failed.wait(test::kPatienceMs));
        QCOMPARE(failed[0][0].toString(), QStringLiteral("shardscope-cli: no worker"));
        QVERIFY(!launcher.isLaunching());
        launcher.launch(folder.path() + QStringLiteral("/no program"), {}, folder.path() + QStringLiteral("/run"));
        QCOMPARE(failed.count(), 1); // the window is not held up by the attempt
        QTRY_COMPARE(failed.count(), 2);
        QVERIFY(!launcher.isLaunching());
    }
};

QTEST_MAIN(UiLaunchTest)
#include "ui_launch_test.moc"
