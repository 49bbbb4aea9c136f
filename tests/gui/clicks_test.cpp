// SPDX-License-Identifier: Apache-2.0
// A running job of two real ranks goes through every mode by clicks in the window's dock: as by `set`, its curve stays,
// its memory is the ledger's and comes back, and what the card says before → after is what SQL says.
#include "app/gui/main_window.h"
#include "profiler/analysis/change_effect.h"
#include "tests/cli/changing_run.h"
#include "tests/gui/hands.h"
#include "tests/support/patience.h"
#include "ui/common/chart.h"
#include "ui/common/chart_markers.h"
#include "ui/common/paths.h"
#include "ui/common/text.h"
#include "ui/common/theme.h"
#include "ui/monitor/events_model.h"
#include "ui/monitor/live_charts.h"
#include "ui/monitor/run_header.h"
#include "ui/monitor/run_list_view.h"
#include "ui/toggles/effect_card.h"
#include "ui/toggles/toggles_panel.h"
#include "ui/toggles/unit_tree.h"

#include <QApplication>
#include <QLabel>
#include <QListView>
#include <QPushButton>
#include <QRegularExpression>
#include <QSettings>
#include <QTest>
#include <clocale>
#include <cmath>

using namespace shardscope;

namespace {

/// Handles the window's events meanwhile.
template <typename Condition>
bool eventually(Condition condition)
{
    return QTest::qWaitFor(condition, test::kPatienceMs);
}

/// What stood on the card at one moment.
struct Card
{
    std::map<QString, QString> texts; ///< by its labels' names: "peak.before"
    std::map<QString, QString> tips;  ///< by figure: "peak"
};

constexpr const char *kFigures[] = {"step", "peak", "exposed"};

class Clicks : public test::ChangingRun
{
protected:
    using test::ChangingRun::ChangingRun;

    void openTheWindow();
    int64_t make(const test::Change &change) override;
    void settled(const test::Change &change) override;
    void chooseUnit(const std::string &unit);
    /// The step that the status bar says the last change is in force from, and what it says of it.
    std::pair<int64_t, QString> told() const;
    bool headerTells(const std::string &what) const;
    void expectMarkers();
    void expectTheCardToSayWhatSqlSays(const std::string &name);
    void expectEveryModeToBeWell();

    template <typename Widget>
    Widget &part(const char *name) const
    {
        auto *found = m_dock->findChild<Widget *>(QString::fromLatin1(name));
        if (!found)
            qFatal("the dock has no %s", name);
        return *found;
    }

    std::unique_ptr<ui::Theme> m_theme;
    std::unique_ptr<QSettings> m_settings;
    std::unique_ptr<gui::MainWindow> m_window;
    ui::TogglesPanel *m_dock = nullptr;
    std::map<std::string, Card> m_cards;             ///< by the change that they were about
    std::vector<std::pair<int64_t, QString>> m_told; ///< of each change
};

class ClicksCuda : public Clicks
{
protected:
    ClicksCuda()
        : Clicks(DeviceKind::Cuda)
    {
    }
};

void Clicks::openTheWindow()
{
    qputenv("XDG_CACHE_HOME", QByteArray::fromStdString((cli.folder() / "the window's cache").string()));
    m_theme = std::make_unique<ui::Theme>();
    m_settings = std::make_unique<QSettings>(ui::fromPath(cli.folder() / "settings.ini"), QSettings::IniFormat);
    m_window = std::make_unique<gui::MainWindow>(*m_theme, *m_settings, ui::fromPath(cli.runs()));
    m_window->resize(1440, 900);
    m_window->show();
    ASSERT_TRUE(QTest::qWaitForWindowExposed(m_window.get(), test::kPatienceMs));
    m_dock = m_window->findChild<ui::TogglesPanel *>();
    ASSERT_TRUE(m_dock);
    auto *runs = m_window->findChild<ui::RunListView *>()->findChild<QListView *>();
    ASSERT_TRUE(eventually([runs] { return runs->model()->rowCount() == 1; }));
    test::click(*runs, runs->model()->index(0, 0));
    // The dock asks the run what is in force, and the recording says which units there are.
    ASSERT_TRUE(eventually([this] {
        return m_dock->isVisible() && part<QWidget>("parallel.strategy").isEnabled() &&
               part<ui::UnitTree>("units").units().size() > 2;
    }));
}

void Clicks::chooseUnit(const std::string &unit)
{
    auto &tree = part<ui::UnitTree>("units");
    QTreeWidgetItem *item = tree.topLevelItem(0); // the whole model
    if (!unit.empty()) {
        QTreeWidgetItem *blocks =
            tree.findItems(QStringLiteral("All blocks"), Qt::MatchExactly | Qt::MatchRecursive)[0];
        test::click(tree, tree.indexFromItem(blocks));
        QTest::keyClick(m_window->windowHandle(), Qt::Key_Right); // opens it
        item = tree.findItems(QString::fromStdString(unit), Qt::MatchExactly | Qt::MatchRecursive)[0];
    }
    if (!item->isSelected() || tree.selectedItems().size() != 1)
        test::click(tree, tree.indexFromItem(item));
    ASSERT_EQ(tree.chosen(), unit.empty() ? ui::Units() : ui::Units{unit});
}

std::pair<int64_t, QString> Clicks::told() const
{
    static const QRegularExpression form(QStringLiteral("^In force from step (\\d+): (.*)$"));
    const auto match = form.match(m_window->findChild<QLabel *>(QStringLiteral("message"))->text());
    return {match.captured(1).toLongLong(), match.captured(2)};
}

/// The line above the page: "· tiny · 2 ranks · none · fp32 …".
bool Clicks::headerTells(const std::string &what) const
{
    const auto *line = m_window->findChild<ui::RunHeader *>()->findChild<QLabel *>(QStringLiteral("asked"));
    return line->text().split(QStringLiteral(" · ")).contains(QString::fromStdString(what));
}

int64_t Clicks::make(const test::Change &change)
{
    const int64_t before = told().first;
    if (change.isUndo()) {
        EXPECT_TRUE(part<QPushButton>("undo").toolTip().contains(QStringLiteral("Restores:")));
        test::click(part<QPushButton>("undo"));
    } else {
        chooseUnit(change.unit);
        for (const auto &[key, value] : change.values)
            test::enter(part<QWidget>(key.c_str()), QString::fromStdString(value));
        test::click(part<QPushButton>("apply"));
    }
    // In force, and the form says so: nothing in it is an edit any more.
    const bool done = eventually(
        [&] { return told().first > before && m_dock->command().isEmpty() && part<QPushButton>("undo").isEnabled(); });
    EXPECT_TRUE(done) << change.name << ": "
                      << qPrintable(m_window->findChild<QLabel *>(QStringLiteral("message"))->text());
    for (const auto &[key, value] : change.values) {
        if (!done || key != "parallel.strategy" || !change.unit.empty())
            continue;
        EXPECT_TRUE(eventually([&] { return headerTells(value); })) << change.name << ": " << value;
    }
    m_told.push_back(told());
    return done ? told().first : 0;
}

void Clicks::settled(const test::Change &change)
{
    if (change.name != "not late" && change.name != "compared")
        return;
    const auto *card = m_dock->findChild<ui::EffectCard *>();
    const QString from = QStringLiteral("from step %1:").arg(firstStep(change.name));
    const auto text = [card](const QString &name) { return card->findChild<QLabel *>(name)->text(); };
    const auto after = [&](const char *figure) { return text(QLatin1String(figure) + QStringLiteral(".after")); };
    ASSERT_TRUE(eventually([&] {
        return card->isVisible() && text(QStringLiteral("change")).contains(from, Qt::CaseInsensitive) &&
               std::ranges::none_of(kFigures, [&](const char *figure) { return after(figure).contains(u'—'); });
    })) << change.name;
    Card &read = m_cards[change.name];
    for (const QString figure : kFigures) {
        for (const QString &side : {figure + QStringLiteral(".before"), figure + QStringLiteral(".after")})
            read.texts[side] = text(side);
        read.tips[figure] = card->findChild<QLabel *>(figure + QStringLiteral(".after"))->toolTip();
    }
}

/// Each change stands in the list of events, for both ranks, and in every chart.
void Clicks::expectMarkers()
{
    auto *events = m_window->findChild<ui::EventsModel *>();
    const auto charts = m_window->findChild<ui::LiveCharts *>()->findChildren<ui::Chart *>();
    ASSERT_GE(charts.size(), 4) << "loss, norm, step time, memory";
    for (const auto &[step, what] : m_told) {
        const auto isListed = [&, what = what] {
            int64_t rows = 0;
            for (int row = 0; row < events->rowCount(); ++row) {
                const store::EventInfo &event = events->eventAt(row);
                rows += event.kind == EventKind::Toggle && QString::fromStdString(event.text) == what ? 1 : 0;
            }
            return rows == std::ranges::count(m_told, what, &std::pair<int64_t, QString>::second) * 2;
        };
        ASSERT_TRUE(eventually(isListed)) << qPrintable(what);
    }
    const auto toggles = [](const ui::Chart *chart) {
        return std::ranges::count_if(chart->markers().markers(),
                                     [](const auto &marker) { return marker.second.contains(QStringLiteral(" → ")); });
    };
    for (const ui::Chart *chart : charts)
        EXPECT_EQ(toggles(chart), m_told.size()) << qPrintable(chart->title());
}

void Clicks::expectTheCardToSayWhatSqlSays(const std::string &name)
{
    static const QRegularExpression count(QStringLiteral(", (\\d+) steps\\)"));
    std::map<std::string, test::Sides> figures = figuresAround(name);
    const Card &card = m_cards.at(name);
    for (const QString figure : kFigures) {
        SCOPED_TRACE(name + ", " + figure.toStdString());
        test::Sides &sides = figures[figure.toStdString()];
        auto counts = count.globalMatch(card.tips.at(figure));
        ASSERT_TRUE(counts.hasNext()) << qPrintable(card.tips.at(figure));
        EXPECT_EQ(counts.next().captured(1).toULongLong(), sides.before.size());
        ASSERT_TRUE(counts.hasNext()) << qPrintable(card.tips.at(figure));
        // The job went on after it was read.
        const size_t after = counts.next().captured(1).toULongLong();
        ASSERT_LE(after, sides.after.size());
        EXPECT_GE(after, analysis::kStepsNeeded);
        sides.after.resize(after);
        const auto expected = [&](const std::vector<double> &values) {
            const auto whole = static_cast<int64_t>(std::llround(test::median(values)));
            return (figure == QLatin1String("peak") ? ui::bytesText(whole) : ui::durationText(whole)).toStdString();
        };
        EXPECT_EQ(card.texts.at(figure + QStringLiteral(".before")).toStdString(), expected(sides.before));
        EXPECT_EQ(card.texts.at(figure + QStringLiteral(".after")).toStdString(), "→ " + expected(sides.after));
    }
}

void Clicks::expectEveryModeToBeWell()
{
    start();
    ASSERT_NO_FATAL_FAILURE(openTheWindow());
    goThroughEveryMode();
    if (!HasFailure())
        expectMarkers();
    stop();
    m_window.reset();
    if (HasFailure())
        return;
    expectAllToBeWell();
    expectTheCardToSayWhatSqlSays("not late");
    expectTheCardToSayWhatSqlSays("compared");
}

TEST_F(Clicks, everyModeLeavesTheCurveAsItWasAndNothingBehind)
{
    expectEveryModeToBeWell();
}

TEST_F(ClicksCuda, everyModeLeavesTheCurveAsItWasAndNothingBehind)
{
    expectEveryModeToBeWell();
}

} // namespace

int main(int argc, char **argv)
{
    QApplication application(argc, argv);
    std::setlocale(LC_NUMERIC, "C");
    QApplication::setDoubleClickInterval(1); // lists that have just opened take clicks after it
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
