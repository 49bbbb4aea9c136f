// SPDX-License-Identifier: Apache-2.0
#include "tests/support/patience.h"
#include "ui/common/background.h"
#include "ui/common/chart.h"
#include "ui/common/chart_columns.h"
#include "ui/common/chart_legend.h"
#include "ui/common/chart_markers.h"
#include "ui/common/chart_table.h"
#include "ui/common/chart_ticker.h"
#include "ui/common/colors.h"
#include "ui/common/custom_plot.h"
#include "ui/common/elided_label.h"
#include "ui/common/flow_layout.h"
#include "ui/common/inspector.h"
#include "ui/common/selection.h"
#include "ui/common/text.h"
#include "ui/common/theme.h"

#include <QAbstractItemModelTester>
#include <QApplication>
#include <QClipboard>
#include <QFontMetrics>
#include <QHelpEvent>
#include <QLabel>
#include <QScrollArea>
#include <QSignalSpy>
#include <QTest>
#include <QToolButton>
#include <QToolTip>
#include <cmath>
#include <numeric>

using namespace shardscope;
using namespace shardscope::ui;

static ChartSeries layer(const QString &name, int color)
{
    return {.name = name, .color = [color](const Colors &colors) { return colors.series(color); }, .stacked = true};
}

/// One series, of which a point's value lasts up to the point.
static void showWallsOfSteps(Chart &chart)
{
    chart.setYAxis(QStringLiteral("Time a step"), ChartUnit::Number);
    chart.setSeries({{.name = QStringLiteral("wall"),
                      .color = [](const Colors &c) { return c.series(0); },
                      .stacked = true,
                      .lasting = true}});
}

class UiCommonTest : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void selectionEmitsOnChangesOnly()
    {
        Selection selection;
        QSignalSpy range(&selection, &Selection::rangeChanged);
        QSignalSpy any(&selection, &Selection::changed);
        selection.setRange(TimeRange{50, 20});
        QCOMPARE(selection.range()->startNs, 20);
        QCOMPARE(selection.range()->endNs, 50);
        selection.setRange(TimeRange{20, 50});
        QCOMPARE(range.count(), 1);
        selection.setRange(TimeRange{30, 30});
        QVERIFY(!selection.range());
        selection.setRanks({3, 1, 3});
        QCOMPARE(selection.ranks(), (std::vector<int>{1, 3}));
        QVERIFY(selection.includesRank(3));
        QVERIFY(!selection.includesRank(2));
        selection.clear();
        QVERIFY(selection.includesRank(2));
        QCOMPARE(any.count(), 4);
    }

    void axisTextsAreRoundInTheirUnit()
    {
        QCOMPARE(roundTickStep(ChartUnit::Bytes, 700e6), std::exp2(29));
        QCOMPARE(roundTickStep(ChartUnit::Number, 0.034), 0.02);
        QCOMPARE(roundTickStep(ChartUnit::Seconds, 50), 60.0);
        QCOMPARE(roundTickStep(ChartUnit::Number, 0), 1.0);
        QCOMPARE(axisText(ChartUnit::Seconds, 150), QStringLiteral("2:30"));
        QCOMPARE(axisText(ChartUnit::Seconds, 3720), QStringLiteral("1:02:00"));
        QCOMPARE(axisText(ChartUnit::Bytes, 1536.0 * 1024 * 1024), QStringLiteral("1.50 GiB"));
        QCOMPARE(axisText(ChartUnit::Share, 0.125), QStringLiteral("12.5 %"));
        QCOMPARE(axisText(ChartUnit::Number, std::nan("")), QStringLiteral("—"));
    }

    void ticksHaveTheirNeighboursDigits()
    {
        const auto texts = [](ChartUnit unit, double first, double step) {
            QStringList all;
            for (int i = 0; i < 3; ++i)
                all << tickText(unit, first + i * step, step);
            return all.join(u' ');
        };
        QCOMPARE(texts(ChartUnit::Number, 5.9, 0.1), QStringLiteral("5.9 6.0 6.1"));
        QCOMPARE(texts(ChartUnit::Number, 0, 5e-5), QStringLiteral("0 0.00005 0.00010"));
        QCOMPARE(texts(ChartUnit::Number, 9e5, 1e5), QStringLiteral("900000 1000000 1100000"));
        QCOMPARE(texts(ChartUnit::Number, 8e6, 2e6), QStringLiteral("8e+06 1.0e+07 1.2e+07"));
        QCOMPARE(texts(ChartUnit::Number, 999'999, 1), QStringLiteral("999999 1000000 1000001"));
        QCOMPARE(texts(ChartUnit::Number, 0, 5e-7), QStringLiteral("0 5e-07 1.0e-06"));
        QCOMPARE(texts(ChartUnit::Number, -20, 10), QStringLiteral("-20 -10 0"));
        QCOMPARE(texts(ChartUnit::Seconds, 1.59, 0.01), QStringLiteral("1.59 s 1.60 s 1.61 s"));
        QCOMPARE(texts(ChartUnit::Seconds, 1.5738, 0.0002), QStringLiteral("1.5738 s 1.5740 s 1.5742 s"));
        QCOMPARE(texts(ChartUnit::Seconds, 40, 20), QStringLiteral("40 s 1:00 1:20"));
        QCOMPARE(texts(ChartUnit::Seconds, 119.8, 0.2), QStringLiteral("1:59.8 2:00.0 2:00.2"));
        QCOMPARE(texts(ChartUnit::Duration, 0, 2e6), QStringLiteral("0 2 ms 4 ms"));
        QCOMPARE(texts(ChartUnit::Duration, 0, 120e9), QStringLiteral("0 2 min 00 s 4 min 00 s"));
        QCOMPARE(texts(ChartUnit::Bytes, 0, std::exp2(29)), QStringLiteral("0 512 MiB 1.00 GiB"));
        QCOMPARE(texts(ChartUnit::Share, 0, 0.005), QStringLiteral("0 % 0.5 % 1.0 %"));
        QCOMPARE(tickText(ChartUnit::Number, 1e-17, 0.1), QStringLiteral("0")); // a sum of steps that misses zero
    }

    void notMeasuredIsADash()
    {
        QCOMPARE(bytesText(std::optional<int64_t>()), QStringLiteral("—"));
        QCOMPARE(bytesText(std::optional<int64_t>(0)), QStringLiteral("0 B"));
        QCOMPARE(lossText(std::nan("")), QStringLiteral("NaN"));
    }

    /// WCAG's contrast of two colours, at least 1.
    static double contrast(const QColor &a, const QColor &b)
    {
        const auto linear = [](double c) { return c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
        const auto luminance = [&](const QColor &c) {
            return 0.2126 * linear(c.redF()) + 0.7152 * linear(c.greenF()) + 0.0722 * linear(c.blueF());
        };
        const double high = std::max(luminance(a), luminance(b));
        const double low = std::min(luminance(a), luminance(b));
        return (high + 0.05) / (low + 0.05);
    }

    void textsCanBeReadInBothThemes()
    {
        for (const QPalette &palette : {lightPalette(), darkPalette()}) {
            const Colors &colors = Colors::of(palette);
            QCOMPARE(palette.color(QPalette::Window), colors.page);
            for (const QColor &text :
                 {colors.text, colors.muted, colors.accent, colors.good, colors.warning, colors.bad}) {
                QVERIFY2(contrast(text, colors.card) >= 4.5, qPrintable(text.name()));
                QVERIFY2(contrast(text, colors.page) >= 4.5, qPrintable(text.name()));
            }
            QVERIFY(contrast(palette.color(QPalette::Highlight), palette.color(QPalette::HighlightedText)) >= 4.5);
        }
    }

    void categoriesDifferFromEachOther()
    {
        const Colors &colors = Colors::of(lightPalette());
        std::vector<QColor> all;
        for (size_t i = 0; i < kMemoryCategories; ++i)
            all.push_back(colors.category(static_cast<MemoryCategory>(i)));
        all.push_back(colors.rounding());
        for (size_t i = 0; i < all.size(); ++i) {
            QVERIFY(contrast(Colors::onFill(all[i]), all[i]) >= 3.0);
            for (size_t j = i + 1; j < all.size(); ++j)
                QVERIFY2(all[i] != all[j], qPrintable(all[i].name()));
        }
    }

    void theWheelScrollsAPageOfCharts()
    {
        QScrollArea area;
        auto *page = new QWidget;
        auto *chart = new Chart(QStringLiteral("c"), QStringLiteral("x"), ChartUnit::Seconds, page);
        chart->setSeries({layer(QStringLiteral("a"), 0)});
        chart->setData({0, 1, 2, 3}, {{1, 2, 3, 4}});
        chart->resize(400, 260);
        page->setFixedSize(400, 2000);
        area.setWidget(page);
        area.resize(420, 300);
        area.show();
        QVERIFY(QTest::qWaitForWindowExposed(&area, test::kPatienceMs));
        chart->plot()->clearFocus();
        const auto turn = [&](Qt::KeyboardModifiers modifiers) {
            const QPointF at(200, 100);
            QWheelEvent event(at, chart->plot()->mapToGlobal(at), {}, {0, -120}, Qt::NoButton, modifiers,
                              Qt::NoScrollPhase, false);
            QCoreApplication::sendEvent(chart->plot(), &event);
            return event.isAccepted(); // else Qt hands it on to the scroll area
        };
        const QCPRange all = chart->plot()->xAxis->range();
        QVERIFY(!turn({}));
        QCOMPARE(chart->plot()->xAxis->range(), all);
        QVERIFY(turn(Qt::ControlModifier));
        QVERIFY(chart->plot()->xAxis->range().size() > all.size());
        // Alone, a chart needs no key held.
        Chart alone(QStringLiteral("c"), QStringLiteral("x"), ChartUnit::Seconds);
        alone.setSeries({layer(QStringLiteral("a"), 0)});
        alone.setData({0, 1, 2, 3}, {{1, 2, 3, 4}});
        alone.show();
        QWheelEvent event({200, 100}, {200, 100}, {}, {0, 120}, Qt::NoButton, {}, Qt::NoScrollPhase, false);
        QCoreApplication::sendEvent(alone.plot(), &event);
        QVERIFY(alone.plot()->xAxis->range().size() < all.size());
    }

    void digitsAreEquallyWide()
    {
        const QFontMetricsF metrics(QApplication::font());
        for (char digit = '1'; digit <= '9'; ++digit)
            QCOMPARE(metrics.horizontalAdvance(QLatin1Char(digit)), metrics.horizontalAdvance(QLatin1Char('0')));
    }

    void themeSwitches()
    {
        Theme theme;
        QSignalSpy changed(&theme, &Theme::changed);
        theme.setMode(Theme::Mode::Dark);
        QVERIFY(Colors::of(QApplication::palette()).dark);
        theme.setMode(Theme::Mode::Light);
        QVERIFY(!Colors::of(QApplication::palette()).dark);
        QVERIFY(changed.count() >= 1);
        QCOMPARE(Theme::modeOf(Theme::textOf(Theme::Mode::Dark)), Theme::Mode::Dark);
    }

    void chartFollowsTheTheme()
    {
        Theme theme;
        theme.setMode(Theme::Mode::Light);
        Chart chart(QStringLiteral("Memory"), QStringLiteral("Time"), ChartUnit::Seconds);
        chart.setSeries({layer(QStringLiteral("a"), 0)});
        chart.setData({0, 1}, {{1, 2}});
        chart.resize(400, 300);
        const QRgb light = chart.image().pixel(2, 2);
        theme.setMode(Theme::Mode::Dark);
        QApplication::processEvents();
        const QRgb dark = chart.image().pixel(2, 2);
        QVERIFY(qGray(light) > 200);
        QVERIFY(qGray(dark) < 80);
        theme.setMode(Theme::Mode::Light);
    }

    void chartStacksAndHides()
    {
        Chart chart(QStringLiteral("Memory"), QStringLiteral("Time"), ChartUnit::Seconds);
        chart.setYAxis(QStringLiteral("Bytes"), ChartUnit::Bytes);
        chart.setSeries({layer(QStringLiteral("a"), 0), layer(QStringLiteral("b"), 1)});
        chart.setData({0, 1, 2}, {{10, 20, 30}, {1, std::nan(""), 3}});
        QVERIFY(chart.plot()->yAxis->range().upper > 33);
        QCOMPARE(chart.plot()->yAxis->range().lower, 0.0);
        auto *legend = chart.findChild<ChartLegend *>();
        const auto buttons = legend->findChildren<QToolButton *>();
        QCOMPARE(buttons.size(), 2);
        buttons[0]->click();
        QVERIFY(chart.plot()->yAxis->range().upper < 10);
        QVERIFY(!chart.readout(2).contains(QLatin1String("30 B")));
        QVERIFY(chart.readout(2).contains(QLatin1String("3 B")));
        QCOMPARE(chart.csv(), QStringLiteral("Time (s),a (bytes),b (bytes)\n0,10,1\n1,20,\n2,30,3\n"));
    }

    void columnsKeepWholePoints()
    {
        std::vector<double> x, height;
        for (int i = 0; i < 100'000; ++i) {
            x.push_back(i * 0.001);
            height.push_back(i == 77'777 ? 1e6 : i % 500);
        }
        const DrawnPoints drawn = drawnPoints(x, height, 0, 100, 0.25);
        QVERIFY(drawn.thinned);
        QVERIFY(drawn.indices.size() <= 402);
        QVERIFY(std::is_sorted(drawn.x.begin(), drawn.x.end()));
        const auto peak = std::find(drawn.indices.begin(), drawn.indices.end(), size_t(77'777));
        QVERIFY(peak != drawn.indices.end());
        QCOMPARE(drawn.x[static_cast<size_t>(peak - drawn.indices.begin())], 77.75); // its column's edge
        QCOMPARE(drawn.x.back(), x.back());
        const DrawnPoints all = drawnPoints(x, height, 50, 50.1, 0.0005);
        QVERIFY(!all.thinned);
        QCOMPARE(all.indices.size(), size_t(103)); // with a neighbour on each side
    }

    void rowsOfAFlowAreEven()
    {
        QWidget window;
        auto *flow = new FlowLayout(8, true);
        window.setLayout(flow);
        for (int i = 0; i < 6; ++i) {
            auto *one = new QWidget(&window);
            one->setMinimumSize(100, 20);
            flow->addWidget(one);
        }
        flow->setGeometry({0, 0, 500, 200}); // four would fit
        QCOMPARE(flow->itemAt(2)->geometry().y(), 0);
        QVERIFY(flow->itemAt(3)->geometry().y() > 0);
        flow->setGeometry({0, 0, 640, 200});
        QCOMPARE(flow->itemAt(5)->geometry().y(), 0);
    }

    void aStackHasGapsWhereNothingWasMeasured()
    {
        const double none = std::nan("");
        // Thinned, what is nearer than a column's width is one point: never what a gap parts.
        const DrawnPoints drawn = drawnPoints({0.1, 0.2, 0.3, 0.4, 0.5}, {3, 4, none, 2, 1}, 0, 1, 1);
        QCOMPARE(drawn.indices, (std::vector<size_t>{1, 2, 3, 3}));
        QVERIFY(std::is_sorted(drawn.x.begin(), drawn.x.end()));
        Chart chart(QStringLiteral("Memory"), QStringLiteral("Time"), ChartUnit::Seconds);
        const auto layer = [](const char *name) {
            return ChartSeries{
                .name = QLatin1String(name), .color = [](const Colors &c) { return c.series(0); }, .stacked = true};
        };
        chart.setSeries({layer("a"), layer("b")});
        chart.setData({0, 1, 2, 3}, {{5, 5, none, 7}, {1, none, none, 1}});
        chart.resize(600, 300);
        chart.show();
        QVERIFY(QTest::qWaitForWindowExposed(&chart, test::kPatienceMs));
        chart.plot()->replot();
        QCOMPARE(chart.plot()->graphCount(), 2);
        for (int graph = 0; graph < 2; ++graph) {
            const auto data = chart.plot()->graph(graph)->data();
            QCOMPARE(data->size(), 4);
            QVERIFY(!std::isnan(data->at(1)->value)); // one layer lacks a value: the others stay
            QVERIFY(std::isnan(data->at(2)->value));
        }
    }

    void aThinnedChartSaysSoWithoutNeedingRoom()
    {
        Chart chart(QStringLiteral("Memory by category, rank 0, on the host"), QStringLiteral("Time"),
                    ChartUnit::Seconds);
        chart.setSeries(
            {{.name = QStringLiteral("a"), .color = [](const Colors &c) { return c.series(0); }, .stacked = true}});
        std::vector<double> x(5000);
        std::iota(x.begin(), x.end(), 0.0);
        chart.setData(x, {std::vector<double>(x.size(), 1)});
        const int least = chart.minimumSizeHint().width();
        chart.resize(600, 300);
        chart.show();
        QVERIFY(QTest::qWaitForWindowExposed(&chart, test::kPatienceMs));
        chart.plot()->replot();
        const auto labels = chart.findChildren<QLabel *>();
        QVERIFY(std::ranges::any_of(
            labels, [](const QLabel *label) { return label->text().contains(QStringLiteral("highest of each few")); }));
        QVERIFY2(chart.minimumSizeHint().width() <= least + 50, "a page that it stands on could not get narrower");
    }

    void aLineHoldsWhereAPointLacksIt()
    {
        const double none = std::nan("");
        Chart chart(QStringLiteral("Memory"), QStringLiteral("Time"), ChartUnit::Seconds);
        const auto color = [](const Colors &c) { return c.series(0); };
        chart.setSeries({{.name = QStringLiteral("a"), .color = color, .stacked = true, .step = true},
                         {.name = QStringLiteral("process"), .color = color, .dashed = true, .step = true}});
        chart.setData({0, 1, 2, 3}, {{5, 5, none, 7}, {9, none, none, 8}});
        chart.setRemark(QStringLiteral("a remark"));
        chart.resize(600, 300);
        chart.show();
        QVERIFY(QTest::qWaitForWindowExposed(&chart, test::kPatienceMs));
        chart.plot()->replot();
        const auto data = chart.plot()->graph(1)->data();
        QCOMPARE(data->at(1)->value, 9.0);
        QVERIFY(std::isnan(data->at(2)->value));                // a gap of the whole chart
        QVERIFY(chart.csv().contains(QLatin1String("1,5,\n"))); // what was not measured is not made up
        const auto labels = chart.findChildren<ElidedLabel *>();
        QVERIFY(std::ranges::any_of(labels, [](const auto *label) { return label->text().contains(u"a remark"); }));
    }

    void aHeldValueIsTheMeasuredOneWhereverTheViewBegins()
    {
        const double none = std::nan("");
        Chart chart(QStringLiteral("Memory"), QStringLiteral("Time"), ChartUnit::Seconds);
        const auto color = [](const Colors &c) { return c.series(0); };
        chart.setSeries({{.name = QStringLiteral("a"), .color = color, .stacked = true, .step = true},
                         {.name = QStringLiteral("process"), .color = color, .dashed = true, .step = true}});
        chart.resize(600, 300);
        chart.show();
        QVERIFY(QTest::qWaitForWindowExposed(&chart, test::kPatienceMs));
        const auto process = [&] { return chart.plot()->graph(1)->data(); };

        chart.setData({0, 1, 2, 3, 4}, {{5, 5, 5, 5, 5}, {9, none, none, none, 8}});
        chart.setXRange(std::pair{2.5, 3.5}); // the last figure is two samples before it
        chart.plot()->replot();
        QCOMPARE(process()->at(0)->value, 9.0);
        QVERIFY(chart.plot()->yAxis->range().upper > 9);

        std::vector<double> x(5000), stack(x.size(), 1), measured(x.size(), none);
        std::iota(x.begin(), x.end(), 0.0);
        measured[0] = 3;
        measured[1000] = 9;
        stack[1001] = 2; // is drawn for its neighbours, also for the one that has the figure
        chart.setData(x, {stack, measured});
        chart.resetZoom();
        chart.plot()->replot();
        QVERIFY(process()->size() < 1000);
        QCOMPARE(process()->findBegin(900)->value, 3.0);
        QCOMPARE(process()->findBegin(1100)->value, 9.0);
        QCOMPARE(process()->at(process()->size() - 1)->value, 9.0);
    }

    void whatLastsIsReadAndSeenUpToItsPoint()
    {
        Chart chart(QStringLiteral("Step time"), QStringLiteral("Time"), ChartUnit::Seconds);
        showWallsOfSteps(chart);
        chart.setData({0, 10, 14, 15}, {{std::nan(""), 100, 40, 10}});
        chart.setPointLabels({QString(), QStringLiteral("Step 1"), QStringLiteral("Step 2"), QStringLiteral("Step 3")});
        QVERIFY(chart.readout(0.5).contains(QLatin1String("Step 1")));
        QVERIFY(chart.readout(10).contains(QLatin1String("Step 1")));
        QVERIFY(chart.readout(10.5).contains(QLatin1String("Step 2")));
        QVERIFY(chart.readout(99).contains(QLatin1String("Step 3")));
        chart.setXRange(std::pair{11.0, 12.0}); // within the second step
        const QCPRange values = chart.plot()->yAxis->range();
        QVERIFY2(values.upper > 40 && values.upper < 50, qPrintable(QString::number(values.upper)));
        chart.setXRange(std::pair{10.5, 14.5}); // the first one is not in view
        QVERIFY(chart.plot()->yAxis->range().upper < 50);
        chart.setXRange(std::pair{10.0, 14.5}); // it ends at the view's very edge
        QVERIFY(chart.plot()->yAxis->range().upper < 50);
    }

    void aSlowFirstStepDoesNotPressTheOthersFlat()
    {
        Chart chart(QStringLiteral("Step time"), QStringLiteral("Time"), ChartUnit::Seconds);
        showWallsOfSteps(chart);
        const auto remark = [&] {
            QStringList texts;
            for (const auto *label : chart.findChildren<ElidedLabel *>())
                texts << label->text();
            return texts.join(u'|');
        };
        const auto top = [&] { return chart.plot()->yAxis->range().upper; };
        chart.setPointLabels({QString(), QStringLiteral("Step 1")});
        chart.setData({0, 10, 11, 12, 13, 14}, {{std::nan(""), 377, 10, 11, 9, 12}});
        QVERIFY2(top() > 12 && top() < 14, qPrintable(QString::number(top())));
        QVERIFY2(remark().contains(QStringLiteral("Step 1 goes beyond the scale, to 377")), qPrintable(remark()));
        chart.setXRange(std::pair{1.0, 2.0}); // that step alone
        QVERIFY(top() > 377);
        QVERIFY(!remark().contains(QStringLiteral("beyond")));
        chart.setXRange(std::pair{10.0, 14.0}); // it ends where the view begins
        QVERIFY(top() < 14);
        QVERIFY2(!remark().contains(QStringLiteral("beyond")), qPrintable(remark()));
        chart.resetZoom();
        chart.setData({0, 10, 20, 21, 22, 23}, {{std::nan(""), 377, 300, 11, 9, 12}}); // two of five are no exception
        QVERIFY(top() > 377);
        chart.setData({0, 10, 11, 12, 13, 14}, {{std::nan(""), 45, 10, 11, 9, 40}}); // hardly higher than another
        QVERIFY(top() > 45);
        QVERIFY(!remark().contains(QStringLiteral("beyond")));
        chart.setData({0, 10, 11, 12, 13, 14}, {{std::nan(""), 39, 10, 11, 9, 12}}); // slower, and no more than that
        QVERIFY(top() > 39);
        QVERIFY(!remark().contains(QStringLiteral("beyond")));
        chart.setData({0, 1, 2, 3, 4, 5, 6}, {{std::nan(""), 0, 0, 3, 0, 0, 0}}); // mostly zero: no median to go by
        QVERIFY2(top() > 3 && top() < 4, qPrintable(QString::number(top())));
        QVERIFY(!remark().contains(QStringLiteral("beyond")));
    }

    void aSlowStepIsBeyondTheScaleWithAllOfItsLayers()
    {
        Chart chart(QStringLiteral("Step time"), QStringLiteral("Time"), ChartUnit::Seconds);
        const auto color = [](const Colors &c) { return c.series(0); };
        chart.setSeries({{.name = QStringLiteral("compute"), .color = color, .stacked = true, .lasting = true},
                         {.name = QStringLiteral("idle"), .color = color, .stacked = true, .lasting = true}});
        // Its lower layer alone is within four times the median.
        chart.setData({0, 10, 11, 12, 13, 14}, {{std::nan(""), 35, 4, 4, 4, 4}, {std::nan(""), 342, 6, 7, 5, 8}});
        const double top = chart.plot()->yAxis->range().upper;
        QVERIFY2(top > 12 && top < 14, qPrintable(QString::number(top)));
    }

    void markersNamesNeverTouch()
    {
        Chart chart(QStringLiteral("Loss"), QStringLiteral("Time"), ChartUnit::Seconds);
        chart.setSeries({{.name = QStringLiteral("loss"), .color = [](const Colors &c) { return c.series(0); }}});
        chart.setData({0, 100}, {{3, 2}});
        chart.setMarkers({{50, QStringLiteral("Pause")},
                          {50.5, QStringLiteral("Unpause")},
                          {51, QStringLiteral("Stop")},
                          {51.2, QStringLiteral("Checkpoint")},
                          {99, QStringLiteral("Checkpoint")}});
        for (const QSize size : {QSize(900, 400), QSize(420, 260)}) {
            chart.resize(size);
            chart.show();
            QVERIFY(QTest::qWaitForWindowExposed(&chart, test::kPatienceMs));
            chart.plot()->replot();
            const std::vector<QRectF> rects = chart.markers().nameRects();
            QVERIFY(rects.size() >= 4);
            for (size_t i = 0; i < rects.size(); ++i) {
                QVERIFY(QRectF(chart.plot()->axisRect()->rect()).adjusted(-1, -1, 1, 1).contains(rects[i]));
                for (size_t k = 0; k < i; ++k)
                    QVERIFY(!rects[i].intersects(rects[k]));
            }
        }
        QVERIFY(chart.readout(50.5).contains(QLatin1String("Unpause"))); // also of a name without room
    }

    void namesOfManyAlikeKeepToTheFirstRow()
    {
        Chart chart(QStringLiteral("Loss"), QStringLiteral("Time"), ChartUnit::Seconds);
        chart.setSeries({{.name = QStringLiteral("loss"), .color = [](const Colors &c) { return c.series(0); }}});
        chart.setData({0, 100}, {{3, 2}});
        std::vector<std::pair<double, QString>> markers = {{50, QStringLiteral("parallel.strategy: full → none")}};
        for (int i = 1; i < 30; ++i)
            markers.emplace_back(i * 3.3, QStringLiteral("Checkpoint"));
        chart.setMarkers(markers);
        chart.resize(700, 300);
        chart.show();
        QVERIFY(QTest::qWaitForWindowExposed(&chart, test::kPatienceMs));
        chart.plot()->replot();
        const std::vector<QRectF> rects = chart.markers().nameRects();
        QVERIFY(rects.size() > 2);
        for (const QRectF &rect : rects)
            QCOMPARE(rect.top(), rects.front().top());
        const auto widest = std::max_element(rects.begin(), rects.end(),
                                             [](const QRectF &a, const QRectF &b) { return a.width() < b.width(); });
        QVERIFY2(widest->width() > rects.front().width() * 1.5, "the change of settings has its name");
    }

    void theInspectorCutsNothingOffInANarrowDock()
    {
        Inspector inspector;
        InspectorContent content;
        content.title = QStringLiteral("wait for reduction block.0");
        content.facts = {{QStringLiteral("Name"), QStringLiteral("wait for reduction")},
                         {QStringLiteral("Collective"),
                          QStringLiteral("Reduce-scatter, number 2350 of communicator 13a3ddef03cb9e3f")},
                         {QStringLiteral("Waited for the last rank"), QStringLiteral("10.1 ms")},
                         {QStringLiteral("Algorithm bandwidth"), QStringLiteral("1.75 GiB/s")}};
        inspector.setContent(content);
        inspector.resize(240, 500);
        inspector.show();
        QVERIFY(QTest::qWaitForWindowExposed(&inspector, test::kPatienceMs));
        QCOMPARE(inspector.width(), 240);
        for (const QLabel *label : inspector.findChildren<QLabel *>()) {
            if (!label->isVisible())
                continue;
            const QRect place(label->mapTo(&inspector, QPoint()), label->size());
            QVERIFY2(inspector.rect().contains(place), qPrintable(label->text()));
            const QRect needed =
                label->fontMetrics().boundingRect(QRect(0, 0, label->width(), 10000), Qt::TextWordWrap, label->text());
            QVERIFY2(needed.width() <= label->width() && needed.height() <= label->height(), qPrintable(label->text()));
        }
    }

    void aLabelWithoutRoomEndsInAnEllipsis()
    {
        const QString text = QStringLiteral("Running, step 1102 of 3000");
        ElidedLabel label(text);
        QVERIFY(label.minimumSizeHint().width() < label.sizeHint().width() / 4);
        const auto lastInkedColumn = [&](int width) {
            label.resize(width, 24);
            const QImage image = label.grab().toImage().convertToFormat(QImage::Format_RGB32);
            int last = -1;
            for (int x = 0; x < image.width(); ++x) {
                for (int y = 0; y < image.height(); ++y)
                    last = image.pixel(x, y) != image.pixel(image.width() - 1, 0) ? x : last;
            }
            return last;
        };
        const int whole = label.fontMetrics().horizontalAdvance(text);
        QVERIFY(lastInkedColumn(whole + 40) > whole - 12);
        QVERIFY(lastInkedColumn(whole / 2) < whole / 2);
        QHelpEvent help(QEvent::ToolTip, QPoint(4, 4), QPoint(4, 4));
        QApplication::sendEvent(&label, &help);
        QCOMPARE(QToolTip::text(), text);
    }

    void textsOnFillsCanBeRead()
    {
        for (const QPalette &palette : {lightPalette(), darkPalette()}) {
            const Colors &colors = Colors::of(palette);
            std::vector<QColor> fills;
            for (const SpanCategory category : {SpanCategory::Compute, SpanCategory::Communication, SpanCategory::Copy,
                                                SpanCategory::Host, SpanCategory::Idle})
                fills.push_back(colors.category(category));
            for (const Phase phase : {Phase::Input, Phase::Forward, Phase::Recompute, Phase::Backward, Phase::Optimizer,
                                      Phase::Checkpoint, Phase::Validate})
                fills.push_back(colors.phase(phase));
            for (const QColor &fill : std::vector<QColor>(fills)) {
                fills.push_back(fill.lighter(112));
                fills.push_back(fill.lighter(86));
            }
            for (const QColor &fill : fills)
                QVERIFY2(Colors::contrast(fill, Colors::onFill(fill)) >= 4.5, qPrintable(fill.name()));
            QVERIFY(Colors::contrast(colors.card, colors.muted) >= 4.5);
            QVERIFY(Colors::contrast(colors.card, colors.text) >= 7);
        }
        QCOMPARE(Colors::contrast(Qt::black, Qt::white), 21.0);
    }

    void chartIsWorkedByMouseAndKeys()
    {
        Chart chart(QStringLiteral("Loss"), QStringLiteral("Time"), ChartUnit::Seconds);
        chart.setSeries({{.name = QStringLiteral("loss"), .color = [](const Colors &c) { return c.series(0); }}});
        chart.setData({0, 100}, {{3, 2}});
        chart.resize(600, 300);
        chart.show();
        QVERIFY(QTest::qWaitForWindowExposed(&chart, test::kPatienceMs));
        QApplication::processEvents();
        QCustomPlot *plot = chart.plot();
        QSignalSpy brushed(&chart, &Chart::brushed);
        QSignalSpy picked(&chart, &Chart::picked);
        const auto at = [plot](double x) { return QPoint(int(plot->xAxis->coordToPixel(x)), plot->height() / 2); };
        QTest::mousePress(plot, Qt::LeftButton, {}, at(20));
        QTest::mouseMove(plot, at(50));
        QTest::mouseMove(plot, at(60));
        QTest::mouseRelease(plot, Qt::LeftButton, {}, at(60));
        QCOMPARE(brushed.count(), 1);
        QVERIFY(std::abs(brushed[0][0].toDouble() - 20) < 1);
        QVERIFY(std::abs(brushed[0][1].toDouble() - 60) < 1);
        QTest::mouseClick(plot, Qt::LeftButton, {}, at(30));
        QCOMPARE(picked.count(), 1);
        QTest::keyClick(plot, Qt::Key_Plus);
        QVERIFY(plot->xAxis->range().size() < 90);
        QTest::keyClick(plot, Qt::Key_Home);
        QCOMPARE(plot->xAxis->range().size(), 100.0);
    }

    void whatWorkInTheBackgroundThrowsIsAnError()
    {
        QString told;
        int answers = 0;
        inBackground(
            this, []() -> Result<int> { throw std::runtime_error("no such thing"); },
            [&](const Result<int> &result) {
                told = result ? QString() : QString::fromStdString(result.error().text);
                ++answers;
            });
        QTRY_COMPARE(answers, 1);
        QVERIFY2(told.contains(QStringLiteral("no such thing")), qPrintable(told));
        inBackground(
            this, []() -> Result<int> { return 7; }, [&](const Result<int> &result) { answers = *result; });
        QTRY_COMPARE(answers, 7);
    }

    void chartTableIsAGoodModel()
    {
        ChartTableModel model({{QStringLiteral("x"), ChartUnit::Seconds, {0, 1}},
                               {QStringLiteral("a, \"b\""), ChartUnit::Bytes, {1024, std::nan("")}}});
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        QCOMPARE(model.index(0, 1).data().toString(), QStringLiteral("1.00 KiB"));
        QCOMPARE(model.csv(), QStringLiteral("x (s),\"a, \"\"b\"\" (bytes)\"\n0,1024\n1,\n"));
    }
};

QTEST_MAIN(UiCommonTest)
#include "ui_common_test.moc"
