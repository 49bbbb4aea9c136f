// SPDX-License-Identifier: Apache-2.0
#include "core/base/clock.h"
#include "core/config/configuration_file.h"
#include "core/config/unit_rules.h"
#include "core/run/run_list.h"
#include "core/run/run_lock.h"
#include "core/run/run_status.h"
#include "recording_fixture.h"
#include "tests/support/patience.h"
#include "tests/support/temporary_folder.h"
#include "ui/common/paths.h"
#include "ui/common/recording_reader.h"
#include "ui/common/selection.h"
#include "ui/launch/field.h"
#include "ui/monitor/run_commands.h"
#include "ui/toggles/effect_card.h"
#include "ui/toggles/toggle_values.h"
#include "ui/toggles/toggles_panel.h"
#include "ui/toggles/unit_tree.h"

#include <QAction>
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QLocalServer>
#include <QLocalSocket>
#include <QMessageBox>
#include <QPointer>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>
#include <QWheelEvent>
#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace shardscope;
using namespace shardscope::ui;
using nlohmann::json;

/// A run whose supervisor is this test: it answers what a run of `configuration` would.
struct AnsweringRun
{
    explicit AnsweringRun(const std::filesystem::path &root)
        : folder(root)
    {
        std::filesystem::create_directories(root);
        auto locked = run::RunLock::acquire(folder);
        if (!locked || !server.listen(fromPath(root / "s")))
            qFatal("no run");
        lock.emplace(std::move(*locked));
        run::RunStatus status;
        status.state = RunState::Running;
        status.attempt = 1;
        status.pid = ::getpid();
        status.heartbeatNs = realtimeNs();
        status.socket = (root / "s").string();
        if (!run::writeStatus(folder, status))
            qFatal("no state");
        QObject::connect(&server, &QLocalServer::newConnection, &server, [this] {
            QLocalSocket *socket = server.nextPendingConnection();
            QObject::connect(socket, &QIODevice::readyRead, socket, [this, socket] {
                while (socket->canReadLine())
                    answer(*socket, json::parse(socket->readLine().toStdString()));
            });
        });
    }
    void answer(QLocalSocket &socket, const json &request)
    {
        received.push_back(request);
        json reply = {{"version", 1}, {"id", request["id"]}, {"ok", true}};
        if (request["command"] == "configuration")
            reply["result"] = {{"configuration", config::toJson(configuration)}, {"start_rules", 0}, {"undo", undo}};
        else if (!refusal.empty() && request["command"] == "set" && !request.contains("force"))
            reply = {{"version", 1},    {"id", request["id"]},  {"ok", false},
                     {"refused", true}, {"forcible", forcible}, {"error", refusal}};
        else
            reply["result"] = {{"step", 12}, {"changed", json::object()}, {"text", "a: 1 → 2"}};
        socket.write(QByteArray::fromStdString(reply.dump() + "\n"));
    }
    json last(const std::string &command) const
    {
        json found;
        for (const json &request : received) {
            if (request["command"] == command)
                found = request;
        }
        return found;
    }
    run::RunSummary summary() const { return run::summarize(folder, realtimeNs()); }

    run::RunFolder folder;
    QLocalServer server;
    std::optional<run::RunLock> lock;
    config::RunConfiguration configuration;
    json undo = nullptr;
    std::string refusal; ///< of each set without force; empty: none
    bool forcible = false;
    std::vector<json> received;
};

/// The panel of a run, and what it works with.
struct Opened
{
    explicit Opened(const AnsweringRun &run)
    {
        const run::RunSummary summary = run.summary();
        panel.setRun(&summary);
    }
    QWidget window;
    RecordingReader reader;
    Selection selection;
    RunCommands commands{&window};
    TogglesPanel panel{{reader, selection}, commands, &window};
};

class UiTogglesTest : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void unitsBecomePatterns()
    {
        const Units all = {"embedding", "block.0", "block.1", "block.2", "head"};
        QCOMPARE(patternsOf({"block.1"}, all), (std::vector<std::string>{"block.1.*"}));
        QCOMPARE(patternsOf({"block.0", "block.1", "block.2", "head"}, all),
                 (std::vector<std::string>{"block.*", "head.*"}));
        const auto whole = requestFor({{"parallel.strategy", "none"}, {"optimizer.clip_norm", "2"}}, {}, all);
        QCOMPARE(whole.assignments, (std::vector<std::string>{"optimizer.clip_norm=2", "parallel.strategy=none"}));
        QVERIFY(whole.rules.empty());
        const auto part = requestFor({{"parallel.strategy", "none"}, {"parallel.prefetch", "off"}}, {"head"}, all);
        QVERIFY(part.assignments.empty());
        QCOMPARE(part.rules, (std::vector<std::string>{"head.*:strategy=none,prefetch=off"}));
        QVERIFY(config::ruleFromText(part.rules[0]).has_value());
    }

    void valuesOfUnitsFollowTheRules()
    {
        config::RunConfiguration configuration;
        configuration.units = {*config::ruleFromText("block.*:strategy=grad_op"),
                               *config::ruleFromText("block.1.*:strategy=none"),
                               *config::ruleFromText("*:kind=norm,strategy=hybrid")};
        QCOMPARE(liveValues(configuration, {})["parallel.strategy"], std::optional<std::string>("full"));
        QCOMPARE(liveValues(configuration, {"head"})["parallel.strategy"], std::optional<std::string>("full"));
        QCOMPARE(liveValues(configuration, {"block.0"})["parallel.strategy"], std::optional<std::string>("grad_op"));
        QCOMPARE(liveValues(configuration, {"block.1"})["parallel.strategy"], std::optional<std::string>("none"));
        QVERIFY(!liveValues(configuration, {"block.0", "block.1"})["parallel.strategy"]);
        QVERIFY(!liveValues(configuration, {"head"}).contains("optimizer.learning_rate"));
        QVERIFY(liveValues(configuration, {}).contains("checkpoint.every"));
        for (const char *key : {"memory.recompute", "memory.activation_offload"}) {
            QVERIFY(liveValues(configuration, {"block.0", "block.1"}).contains(key));
            QVERIFY(!liveValues(configuration, {"embedding", "block.1"}).contains(key));
            QVERIFY(!liveValues(configuration, {"head"}).contains(key));
        }
    }

    void aTreeOfUnitsGivesTheChoice()
    {
        UnitTree tree;
        QSignalSpy changed(&tree, &UnitTree::choiceChanged);
        tree.setUnits({"embedding", "block.0", "block.1", "head"});
        QCOMPARE(changed.count(), 1);
        QVERIFY(tree.chosen().empty());
        QTreeWidgetItem *whole = tree.topLevelItem(0);
        tree.clearSelection();
        whole->child(1)->setSelected(true); // all blocks
        QCOMPARE(tree.chosen(), (Units{"block.0", "block.1"}));
        whole->child(2)->setSelected(true);
        QCOMPARE(tree.chosen(), (Units{"block.0", "block.1", "head"}));
        tree.setUnits({"embedding", "block.0", "block.1", "head"});
        QCOMPARE(tree.chosen().size(), 3U);
    }

    void appliesWhatWasEdited()
    {
        test::TemporaryFolder temporary;
        AnsweringRun run(temporary.path() / "run");
        run.configuration.optimizer.clipNorm = 3;
        run.undo = {{"parallel.strategy", {{"from", "full"}, {"to", "none"}}}};
        Opened opened(run);
        TogglesPanel &panel = opened.panel;
        auto *clip = panel.findChild<QLineEdit *>(QStringLiteral("optimizer.clip_norm"));
        auto *strategy = panel.findChild<QComboBox *>(QStringLiteral("parallel.strategy"));
        QVERIFY(clip && strategy);
        QTRY_COMPARE(clip->text(), QStringLiteral("3"));
        QCOMPARE(strategy->currentText(), QStringLiteral("full"));
        QVERIFY(!panel.applyAction()->isEnabled());
        QVERIFY(panel.undoAction()->isEnabled());
        QVERIFY(panel.undoAction()->toolTip().contains(QStringLiteral("parallel.strategy: full → none")));

        strategy->setCurrentText(QStringLiteral("grad_op"));
        QCOMPARE(panel.command(), QStringLiteral("shardscope-cli set run parallel.strategy=grad_op"));
        QVERIFY(panel.applyAction()->isEnabled());
        QSignalSpy told(&panel, &TogglesPanel::told);
        run.configuration.parallel.strategy = Strategy::GradOp;
        panel.applyAction()->trigger();
        QVERIFY(!panel.applyAction()->isEnabled());
        QTRY_COMPARE(told.count(), 1);
        QCOMPARE(told[0][0].toString(), QStringLiteral("In force from step 12: a: 1 → 2"));
        QVERIFY(run.last("set")["set"] == json::array({"parallel.strategy=grad_op"}));
        QTRY_VERIFY(panel.command().isEmpty());

        run.refusal = "parallel.shard_group = 3 doesn't divide parallel.ranks = 2.";
        strategy->setCurrentText(QStringLiteral("hybrid"));
        panel.applyAction()->trigger();
        QTRY_VERIFY(panel.applyAction()->isEnabled()); // it can be mended and tried again
        const auto labels = panel.findChildren<QLabel *>();
        QVERIFY(std::any_of(labels.begin(), labels.end(), [&](const QLabel *label) {
            return label->isVisibleTo(&panel) && label->text() == QString::fromStdString(run.refusal);
        }));
        run.refusal.clear();
        panel.undoAction()->trigger();
        QTRY_VERIFY(!run.last("undo").is_null());
    }

    void whatMayNotFitIsAskedForAgain()
    {
        test::TemporaryFolder temporary;
        AnsweringRun run(temporary.path() / "run");
        run.refusal = "The predicted peak of a rank is 9 GiB, and it can have 8 GiB.";
        run.forcible = true;
        Opened opened(run);
        TogglesPanel &panel = opened.panel;
        auto *strategy = panel.findChild<QComboBox *>(QStringLiteral("parallel.strategy"));
        QTRY_COMPARE(strategy->currentText(), QStringLiteral("full"));
        strategy->setCurrentText(QStringLiteral("none"));
        /// Applies, and presses a button of the question that comes, with or without a checkpoint first.
        const auto answer = [&](const char *button, bool checkpoint) {
            run.received.clear();
            panel.applyAction()->trigger();
            QTRY_VERIFY(panel.findChild<QMessageBox *>(QStringLiteral("force")));
            QPointer<QMessageBox> box = panel.findChild<QMessageBox *>(QStringLiteral("force"));
            QVERIFY(box->informativeText().contains(QString::fromStdString(run.refusal)));
            QVERIFY(box->checkBox()->isChecked());
            box->checkBox()->setChecked(checkpoint);
            QAbstractButton *pressed = button ? box->findChild<QAbstractButton *>(QString::fromLatin1(button))
                                              : box->button(QMessageBox::Cancel);
            QTest::mouseClick(pressed, Qt::LeftButton);
            QTRY_VERIFY(!box);
        };
        const auto commands = [&run] {
            std::vector<std::string> commands;
            for (const json &request : run.received)
                commands.push_back(request["command"]);
            return commands;
        };
        QSignalSpy told(&panel, &TogglesPanel::told);
        answer(nullptr, true);
        QVERIFY(panel.applyAction()->isEnabled()); // as it was
        QVERIFY(commands() == std::vector<std::string>{"set"});

        answer("applyAnyway", true);
        QTRY_COMPARE(told.count(), 1);
        QTRY_VERIFY(commands() == (std::vector<std::string>{"set", "checkpoint", "set", "configuration"}));
        QVERIFY(run.last("set")["set"] == json::array({"parallel.strategy=none"}));
        QVERIFY(run.last("set")["force"] == true);

        QTRY_COMPARE(strategy->currentText(), QStringLiteral("full")); // what this run says is in force
        strategy->setCurrentText(QStringLiteral("none"));
        answer("applyAnyway", false);
        QTRY_COMPARE(told.count(), 2);
        QTRY_VERIFY(commands() == (std::vector<std::string>{"set", "set", "configuration"}));
    }

    void theWheelScrollsTheFormAndChangesNothing()
    {
        test::TemporaryFolder temporary;
        AnsweringRun run(temporary.path() / "run");
        Opened opened(run);
        auto *strategy = opened.panel.findChild<QComboBox *>(QStringLiteral("parallel.strategy"));
        QTRY_COMPARE(strategy->currentText(), QStringLiteral("full"));
        const QPointF middle = strategy->rect().center();
        QWheelEvent down(middle, strategy->mapToGlobal(middle), {}, {0, -120}, Qt::NoButton, Qt::NoModifier,
                         Qt::NoScrollPhase, false);
        QCoreApplication::sendEvent(strategy, &down);
        QCOMPARE(strategy->currentText(), QStringLiteral("full"));
        QVERIFY(!opened.panel.applyAction()->isEnabled());
    }

    void whatWasTypedStaysWhenSomebodyElseSetsSomething()
    {
        test::TemporaryFolder temporary;
        AnsweringRun run(temporary.path() / "run");
        run.configuration.optimizer.clipNorm = 3;
        Opened opened(run);
        TogglesPanel &panel = opened.panel;
        auto *clip = panel.findChild<QLineEdit *>(QStringLiteral("optimizer.clip_norm"));
        auto *strategy = panel.findChild<QComboBox *>(QStringLiteral("parallel.strategy"));
        QTRY_COMPARE(clip->text(), QStringLiteral("3"));
        clip->setText(QStringLiteral("0.50"));
        QVERIFY(panel.applyAction()->isEnabled());

        run.configuration.parallel.strategy = Strategy::GradOp; // by the command line
        opened.commands.ask(fromPath(run.folder.root()), {.kind = control::RequestKind::Configuration});
        QTRY_COMPARE(strategy->currentText(), QStringLiteral("grad_op"));
        QCOMPARE(clip->text(), QStringLiteral("0.50"));
        QCOMPARE(panel.command(), QStringLiteral("shardscope-cli set run optimizer.clip_norm=0.50"));

        // What is applied is no edit any more: the form says what is in force, in its own words.
        run.configuration.optimizer.clipNorm = 0.5;
        panel.applyAction()->trigger();
        QTRY_COMPARE(clip->text(), QStringLiteral("0.5"));
        QVERIFY(panel.command().isEmpty());
    }

    void unitsAreSetByRules()
    {
        test::TemporaryFolder temporary;
        AnsweringRun run(temporary.path() / "run");
        Opened opened(run);
        TogglesPanel &panel = opened.panel;
        auto *strategy = panel.findChild<QComboBox *>(QStringLiteral("parallel.strategy"));
        auto *rate = panel.findChild<QLineEdit *>(QStringLiteral("optimizer.learning_rate"));
        auto *tree = panel.findChild<UnitTree *>();
        QTRY_COMPARE(strategy->currentText(), QStringLiteral("full"));
        tree->setUnits({"embedding", "block.0", "block.1", "head"});
        tree->clearSelection();
        tree->topLevelItem(0)->child(0)->setSelected(true);
        QVERIFY(!rate->isEnabled()); // a rate is the whole model's
        QVERIFY(strategy->isEnabled());
        strategy->setCurrentText(QStringLiteral("none"));
        panel.applyAction()->trigger();
        QTRY_VERIFY(run.last("set").is_object());
        QVERIFY(run.last("set")["unit"] == json::array({"embedding.*:strategy=none"}));
        QVERIFY(run.last("set")["set"].empty());
    }

    void aRunThatHasEndedTakesNothing()
    {
        QWidget window;
        RecordingReader reader;
        Selection selection;
        RunCommands commands(&window);
        TogglesPanel panel({reader, selection}, commands, &window);
        panel.setRun(nullptr);
        QVERIFY(!panel.isVisibleTo(&window));
        QVERIFY(!panel.applyAction()->isEnabled());
        QVERIFY(!panel.findChild<QComboBox *>(QStringLiteral("parallel.strategy"))->isEnabled());
    }

    void aRunThatHasEndedShowsWhatWasLastInForce()
    {
        test::TemporaryFolder temporary;
        const run::RunFolder folder(temporary.path() / "run");
        QVERIFY(test::writeFixtureRecording(folder.root()).has_value());
        run::RunStatus status;
        status.state = RunState::Done;
        QVERIFY(run::writeStatus(folder, status).has_value());
        QWidget window;
        RecordingReader reader;
        Selection selection;
        RunCommands commands(&window);
        TogglesPanel panel({reader, selection}, commands, &window);
        auto *prefetch = panel.findChild<QComboBox *>(QStringLiteral("parallel.prefetch"));
        reader.open(fromPath(folder.root()));
        const run::RunSummary summary = run::summarize(folder, realtimeNs());
        panel.setRun(&summary);
        QTRY_COMPARE(prefetch->currentText(), QStringLiteral("pre"));
        QVERIFY(!prefetch->isEnabled());
        QVERIFY(!panel.findChild<QCheckBox *>(QStringLiteral("parallel.forward_prefetch"))->isEnabled());
        QVERIFY(!panel.findChild<QPushButton *>(QStringLiteral("apply"))->isVisibleTo(&panel));
        const auto labels = panel.findChildren<QLabel *>();
        QVERIFY(std::ranges::any_of(labels, [&panel](const QLabel *label) {
            return label->isVisibleTo(&panel) && label->text().contains(QLatin1String("This run has ended"));
        }));
    }

    void theCardSaysWhatIsMoreThanChance()
    {
        EffectCard card;
        card.setEffect(std::nullopt);
        QVERIFY(card.isHidden());
        analysis::ChangeEffect effect;
        effect.firstStep = 31;
        effect.changedJson = R"({"parallel.prefetch": {"from": "pre", "to": "off"}})";
        effect.stepsAfter = 27;
        effect.stepNs = {analysis::Side{20, 1e9, 0.9e9, 1.1e9}, analysis::Side{27, 2e9, 1.9e9, 2.1e9}, 1e-5};
        effect.peakBytes = {analysis::Side{20, 1 << 30, 1 << 30, 1 << 30},
                            analysis::Side{27, 1 << 30, 1 << 30, 1 << 30}, 1.0};
        card.setEffect(effect);
        QStringList texts;
        QString tips;
        for (const QLabel *label : card.findChildren<QLabel *>()) {
            texts << label->text();
            tips += label->toolTip();
        }
        QVERIFY(texts.contains(QStringLiteral("From step 31:\nparallel.prefetch: pre → off")));
        QVERIFY(texts.contains(QStringLiteral("1.00 s")));
        QVERIFY(texts.contains(QStringLiteral("→ 2.00 s")));
        QVERIFY(texts.contains(QStringLiteral("+100.0 %")));
        // Half of what lies between the quartiles, without a mouse.
        for (const char *name : {"step.spreadBefore", "step.spreadAfter"})
            QCOMPARE(card.findChild<QLabel *>(QLatin1String(name))->text(), QStringLiteral("± 100 ms"));
        QCOMPARE(card.findChild<QLabel *>(QStringLiteral("peak.spreadAfter"))->text(), QStringLiteral("± 0 B"));
        const QString figure = QStringLiteral("The figure behind ± is half");
        QVERIFY(card.findChild<QLabel *>(QStringLiteral("step.after"))->toolTip().contains(figure));
        QVERIFY(card.findChild<QLabel *>(QStringLiteral("exposed.spreadAfter"))->isHidden()); // not measured
        QVERIFY(!card.findChild<QLabel *>(QStringLiteral("exposed.after"))->toolTip().contains(figure));
        QCOMPARE(texts.filter(QStringLiteral("not significant")).size(), 1);
        QVERIFY(tips.contains(QStringLiteral("Mann–Whitney U, two-sided: p = 1e-05")));
        effect.peakBytes.p = 1e-3; // more values apart from the median than before, and the same median
        card.setEffect(effect);
        texts.clear();
        for (const QLabel *label : card.findChildren<QLabel *>())
            texts << label->text();
        QVERIFY(texts.contains(QStringLiteral("less than 0.1 %")));
        effect.stepsAfter = 4;
        effect.stepNs = effect.peakBytes = {};
        card.setEffect(effect);
        texts.clear();
        for (const QLabel *label : card.findChildren<QLabel *>())
            texts << label->text();
        QVERIFY(texts.contains(QStringLiteral("4 of 10 steps after the first 3.")));
    }
};

QTEST_MAIN(UiTogglesTest)
#include "ui_toggles_test.moc"
