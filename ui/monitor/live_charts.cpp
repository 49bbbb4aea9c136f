// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/monitor/live_charts.h"

#include "core/config/live_change.h"
#include "ui/common/chart.h"
#include "ui/common/colors.h"
#include "ui/common/flow_layout.h"
#include "ui/common/selection.h"
#include "ui/common/text.h"
#include "ui/monitor/events_model.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace shardscope::ui {

static constexpr int64_t kSameThingNs = 2'000'000'000;

static std::vector<ChartSeries> stepTimeSeries()
{
    const auto part = [](const QString &name, auto color) {
        return ChartSeries{.name = name, .color = color, .stacked = true, .lasting = true};
    };
    const auto communication = [](int lightness) {
        return [lightness](const Colors &colors) {
            return colors.category(SpanCategory::Communication).lighter(lightness);
        };
    };
    const auto host = [](const Colors &colors) { return colors.category(SpanCategory::Host); };
    const auto idle = [](const Colors &colors) { return colors.category(SpanCategory::Idle); };
    return {
        part(LiveCharts::tr("Compute"), [](const Colors &colors) { return colors.category(SpanCategory::Compute); }),
        part(LiveCharts::tr("Optimizer"), [](const Colors &colors) { return colors.phase(Phase::Optimizer); }),
        part(LiveCharts::tr("All-gather"), communication(100)),
        part(LiveCharts::tr("Reduce-scatter"), communication(130)),
        part(LiveCharts::tr("Other communication"), communication(165)),
        part(LiveCharts::tr("Copies"), [](const Colors &colors) { return colors.category(SpanCategory::Copy); }),
        part(LiveCharts::tr("Host"), host),
        part(LiveCharts::tr("Waits for a rank"), [](const Colors &colors) { return colors.phase(Phase::Recompute); }),
        part(LiveCharts::tr("Idle"), idle),
    };
}

LiveCharts::LiveCharts(Selection &selection, QWidget *parent)
    : QWidget(parent)
    , m_selection(selection)
    , m_layout(new FlowLayout(8, true))
    , m_loss(addChart(tr("Loss")))
    , m_norm(addChart(tr("Gradient norm and learning rate")))
    , m_stepTime(addChart(tr("Step time, with what nothing hides")))
{
    setLayout(m_layout);
    QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Minimum);
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
    for (Chart *chart : m_charts)
        m_layout->addWidget(chart);
    m_loss->setYAxis(tr("Loss (nats a token)"), ChartUnit::Number);
    m_loss->setSeries(
        {{.name = tr("Training"), .color = [](const Colors &colors) { return colors.series(0); }},
         {.name = tr("Validation"), .color = [](const Colors &colors) { return colors.series(1); }, .points = true}});
    m_norm->setYAxis(tr("Gradient norm"), ChartUnit::Number);
    m_norm->setSecondYAxis(tr("Learning rate"), ChartUnit::Number);
    m_norm->setSeries({{.name = tr("Gradient norm"), .color = [](const Colors &colors) { return colors.series(2); }},
                       {.name = tr("Learning rate"),
                        .color = [](const Colors &colors) { return colors.series(4); },
                        .secondAxis = true}});
    m_stepTime->setYAxis(tr("Time a step"), ChartUnit::Duration);
    const QString sql = QStringLiteral("SELECT * FROM step ORDER BY process_id, number");
    for (Chart *chart : {m_loss, m_norm, m_stepTime})
        chart->setSql(sql);
    connect(&selection, &Selection::rangeChanged, this, &LiveCharts::brush);
}

Chart *LiveCharts::addChart(const QString &title)
{
    auto *chart = new Chart(title, tr("Running time"), ChartUnit::Seconds, this);
    m_charts.push_back(chart);
    connect(chart, &Chart::xRangeChanged, this,
            [this, chart](double lower, double upper, bool fit) { follow(chart, lower, upper, fit); });
    connect(chart, &Chart::brushed, this, [this](double lower, double upper) {
        m_selection.setRange(TimeRange{m_time.nsOf(lower), m_time.nsOf(upper)});
    });
    connect(chart, &Chart::picked, this, [this](double x) {
        m_selection.setRange(std::nullopt);
        Q_EMIT picked(x);
    });
    connect(chart, &Chart::hovered, this, [this, chart](double x) {
        for (Chart *other : m_charts) {
            if (other != chart)
                other->setCursor(x);
        }
    });
    connect(chart, &Chart::hoverLeft, this, [this] {
        for (Chart *other : m_charts)
            other->setCursor(std::nullopt);
    });
    chart->setXRange(m_view);
    return chart;
}

void LiveCharts::follow(Chart *leader, double lower, double upper, bool fit)
{
    m_view = fit ? std::nullopt : std::optional(std::pair{lower, upper});
    for (Chart *chart : m_charts) {
        if (chart != leader)
            chart->setXRange(m_view);
    }
    Q_EMIT viewChanged();
}

void LiveCharts::brush()
{
    std::optional<std::pair<double, double>> range;
    if (const auto &selected = m_selection.range())
        range = std::pair{m_time.secondsAt(selected->startNs), m_time.secondsAt(selected->endNs)};
    for (Chart *chart : m_charts)
        chart->setBrush(range);
}

static void fill(Chart *chart, ChartData data)
{
    chart->setPointLabels(std::move(data.labels));
    chart->setData(std::move(data.x), std::move(data.columns));
}

void LiveCharts::refresh(const LiveSeries &series, std::optional<int> rank)
{
    if (m_time != series.time()) {
        m_time = series.time();
        brush();
    }
    fill(m_loss, series.loss(m_view));
    fill(m_norm, series.norm(m_view));
    m_stepTime->setRemark(rank || series.ranks().size() < 2 ? QString() : tr("of the rank that the others wait for"));
    refreshStepTime(series.stepTime(rank, m_view));
    refreshMemory(series, rank);
}

void LiveCharts::refreshStepTime(ChartData data)
{
    // A legend of parts that never occur would take the room of the chart.
    const auto used = LiveSeries::usedParts(data);
    std::vector<std::vector<double>> columns;
    std::vector<ChartSeries> series = stepTimeSeries();
    std::vector<ChartSeries> shown;
    for (size_t i = 0; i < kStepParts; ++i) {
        if (used[i]) {
            columns.push_back(std::move(data.columns[i]));
            shown.push_back(std::move(series[i]));
        }
    }
    if (used != m_usedParts)
        m_stepTime->setSeries(std::move(shown));
    m_usedParts = used;
    data.columns = std::move(columns);
    fill(m_stepTime, std::move(data));
}

void LiveCharts::refreshMemory(const LiveSeries &series, std::optional<int> rank)
{
    const auto used = series.usedCategories();
    const bool reserve = series.hasReserve();
    const bool seriesChanged = used != m_used || reserve != m_hasReserve;
    m_hasReserve = reserve;
    m_used = used;
    const std::vector<int> ranks = series.ranks();
    for (auto one = m_memory.begin(); one != m_memory.end();) {
        if (std::find(ranks.begin(), ranks.end(), one->first) == ranks.end()) { // another run was opened
            std::erase(m_charts, one->second.chart);
            delete one->second.chart;
            one = m_memory.erase(one);
        } else {
            ++one;
        }
    }
    for (const int one : ranks) {
        refreshMemoryOf(one, series, seriesChanged);
        m_memory[one].chart->setVisible(!rank || *rank == one);
    }
    if (seriesChanged)
        brush();
}

void LiveCharts::refreshMemoryOf(int rank, const LiveSeries &series, bool seriesChanged)
{
    MemoryChart &memory = m_memory[rank];
    const bool fresh = !memory.chart;
    if (fresh) {
        memory.chart = addChart(tr("Memory of rank %1").arg(rank));
        memory.chart->setYAxis(tr("Bytes"), ChartUnit::Bytes);
        memory.chart->setSql(QStringLiteral("SELECT * FROM memory ORDER BY process_id, time_ns"));
        m_layout->addWidget(memory.chart);
    }
    const auto process = series.highest(rank, LiveSeries::kProcessUsed);
    const bool isFar = process && *process > kFarAbove * series.highest(rank, LiveSeries::kReserved).value_or(0);
    const bool hasProcessUsed = process && !isFar;
    if (fresh || seriesChanged || hasProcessUsed != memory.hasProcessUsed) {
        memory.hasProcessUsed = hasProcessUsed;
        setMemorySeries(memory);
    }
    const ChartData data = series.memory(rank);
    memory.chart->setData(data.x, memoryColumns(data, hasProcessUsed));
    memory.chart->setRemark(isFar ? farAboveText(static_cast<int64_t>(*process)) : QString());
}

void LiveCharts::setMemorySeries(const MemoryChart &memory)
{
    std::vector<ChartSeries> series;
    for (size_t c = 0; c < kMemoryCategories; ++c) {
        const auto category = static_cast<MemoryCategory>(c);
        if (m_used[c])
            series.push_back({.name = nameOf(category),
                              .color = [category](const Colors &colors) { return colors.category(category); },
                              .stacked = true,
                              .step = true});
    }
    if (m_used[kMemoryCategories])
        series.push_back({.name = tr("Rounding"),
                          .color = [](const Colors &colors) { return colors.rounding(); },
                          .stacked = true,
                          .step = true});
    if (m_hasReserve)
        series.push_back({.name = tr("Reserved"),
                          .color = [](const Colors &colors) { return colors.text; },
                          .dashed = true,
                          .step = true});
    if (memory.hasProcessUsed)
        series.push_back({.name = tr("Process (NVML)"),
                          .color = [](const Colors &colors) { return colors.bad; },
                          .dashed = true,
                          .step = true});
    memory.chart->setSeries(std::move(series));
}

std::vector<std::vector<double>> LiveCharts::memoryColumns(const ChartData &data, bool hasProcessUsed) const
{
    std::vector<std::vector<double>> columns;
    for (size_t c = 0; c <= kMemoryCategories; ++c) {
        if (m_used[c])
            columns.push_back(data.columns[c]);
    }
    if (m_hasReserve)
        columns.push_back(data.columns[LiveSeries::kReserved]);
    if (hasProcessUsed)
        columns.push_back(data.columns[LiveSeries::kProcessUsed]);
    return columns;
}

/// "strategy → none", "block.1.*: strategy → full +1": short, because many stand side by side. The list of events has
/// all of it.
static QString toggleText(const std::string &changedJson)
{
    const auto changed = config::differencesIn(changedJson);
    if (changed.empty())
        return {};
    QString key = QString::fromStdString(changed.front().key);
    if (key.startsWith(QLatin1String("unit '")))
        key = key.mid(6).remove(u'\'');
    else
        key = key.section(u'.', 1);
    QString text = key + QStringLiteral(" → ") + QString::fromStdString(changed.front().to);
    if (changed.size() > 1)
        text += QStringLiteral(" +%1").arg(changed.size() - 1);
    return text;
}

/// What was done, as a marker tells it. Supervisor and ranks word the same command differently.
static QString deedOf(const store::EventInfo &event)
{
    if (event.kind == EventKind::Toggle) {
        if (const QString text = toggleText(event.detailJson); !text.isEmpty())
            return text;
    }
    if (event.kind != EventKind::Command || event.text.empty())
        return EventsModel::nameOf(event.kind);
    QString text = QString::fromStdString(event.text);
    if (text.startsWith(QLatin1String("paused"), Qt::CaseInsensitive))
        return LiveCharts::tr("Pause");
    if (text.startsWith(QLatin1String("going on"), Qt::CaseInsensitive))
        return LiveCharts::tr("Unpause");
    text[0] = text[0].toUpper(); // which one: "Stop" says more than "Command"
    return text;
}

/// Its toggle stands where it came into force.
static bool asksForToggle(const store::EventInfo &event)
{
    return event.kind == EventKind::Command && (event.text.starts_with("set ") || event.text.starts_with("undo "));
}

void LiveCharts::setEvents(const std::vector<store::EventInfo> &events)
{
    std::vector<std::pair<double, QString>> markers;
    struct Shown
    {
        int64_t timeNs = 0;
        std::set<store::Index> tellers;
    };
    std::map<QString, Shown> shown;
    for (const store::EventInfo &event : events) {
        if (event.kind == EventKind::Recording || asksForToggle(event))
            continue;
        // Supervisor and ranks tell of the same thing, each once: one marker is enough.
        const QString deed = deedOf(event);
        const auto [one, isFirst] = shown.try_emplace(deed);
        const bool isNear = !isFirst && std::abs(event.timeNs - one->second.timeNs) < kSameThingNs;
        if (isNear && one->second.tellers.insert(event.process).second)
            continue;
        one->second = {event.timeNs, {event.process}};
        markers.emplace_back(m_time.secondsAt(event.timeNs), deed);
    }
    for (const auto &[attempt, when] : m_time.attempts()) {
        if (attempt != m_time.attempts().begin()->first)
            markers.emplace_back(m_time.beginOf(attempt), tr("Attempt %1").arg(attempt));
    }
    for (Chart *chart : m_charts)
        chart->setMarkers(markers);
}

} // namespace shardscope::ui
