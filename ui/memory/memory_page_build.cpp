// SPDX-License-Identifier: GPL-3.0-or-later
#include "profiler/store/recording.h"
#include "ui/common/chart.h"
#include "ui/common/colors.h"
#include "ui/common/icons.h"
#include "ui/common/selection.h"
#include "ui/common/text.h"
#include "ui/common/text_dialog.h"
#include "ui/memory/memory_page.h"
#include "ui/memory/peak_table_model.h"
#include "ui/memory/readout_model.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QHeaderView>
#include <QLabel>
#include <QScrollBar>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QSplitter>
#include <QTableView>
#include <QToolBar>
#include <QVBoxLayout>
#include <cmath>
#include <limits>

namespace shardscope::ui::memory {

namespace {

/// More points than this in one chart tell an eye nothing and cost a frame.
constexpr size_t kMostPoints = 3000;

std::vector<ChartSeries> seriesOf(bool hasReserve, bool hasLimit, bool hasProcess)
{
    std::vector<ChartSeries> series;
    for (size_t i = 0; i < kMemoryCategories; ++i) {
        const auto category = static_cast<MemoryCategory>(i);
        series.push_back({.name = nameOf(category),
                          .color = [category](const Colors &colors) { return colors.category(category); },
                          .stacked = true,
                          .step = true});
    }
    const auto line = [&](const QString &name, auto color, bool dashed) {
        series.push_back({.name = name, .color = color, .dashed = dashed, .step = true});
    };
    series.push_back({.name = MemoryPage::tr("Rounding"),
                      .color = [](const Colors &colors) { return colors.rounding(); },
                      .stacked = true,
                      .step = true});
    line(
        MemoryPage::tr("Allocated"), [](const Colors &colors) { return colors.text; }, false);
    series.back().outline = true;
    if (hasReserve)
        line(
            MemoryPage::tr("Reserved"), [](const Colors &colors) { return colors.accent; }, true);
    if (hasProcess)
        line(
            MemoryPage::tr("Used by the process"), [](const Colors &colors) { return colors.warning; }, true);
    if (hasLimit)
        line(
            MemoryPage::tr("The device's memory"), [](const Colors &colors) { return colors.bad; }, true);
    return series;
}

} // namespace

void MemoryPage::build()
{
    buildActions();
    auto *content = new QWidget(this);
    m_chart = new Chart(tr("Memory by category"), tr("Time since the run began"), ChartUnit::Seconds, content);
    m_chart->setYAxis(tr("Memory"), ChartUnit::Bytes);
    auto *splitter = new QSplitter(Qt::Vertical, content);
    auto *charted = new QWidget(content);
    auto *chartLayout = new QVBoxLayout(charted);
    chartLayout->setContentsMargins(0, 0, 0, 0);
    chartLayout->addWidget(m_chart, 1);
    m_note = new QLabel(charted);
    chartLayout->addWidget(m_note, 0, Qt::AlignRight);
    splitter->addWidget(charted);
    splitter->addWidget(buildTables());
    splitter->setChildrenCollapsible(false);
    splitter->setStretchFactor(0, 3);
    splitter->setStretchFactor(1, 2);
    auto *layout = new QVBoxLayout(content);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->addWidget(buildBar());
    layout->addWidget(splitter, 1);
    setContent(content);

    const auto ns = [](double seconds) { return static_cast<int64_t>(std::llround(seconds * 1e9)); };
    connect(m_chart, &Chart::xRangeChanged, this, [this, ns](double lower, double upper, bool fit) {
        m_view = fit ? std::nullopt : std::optional(TimeRange{ns(lower), ns(upper)});
        fillChart();
    });
    connect(m_chart, &Chart::brushed, this, [this, ns](double lower, double upper) {
        selection().setRange(TimeRange{ns(lower), ns(upper)});
    });
    connect(m_chart, &Chart::hovered, this, [this, ns](double x) { m_readoutModel->setCursor(ns(x)); });
    connect(m_chart, &Chart::hoverLeft, this, [this] { m_readoutModel->setCursor(std::nullopt); });
    connect(m_chart, &Chart::picked, this, [this, ns](double x) {
        const auto sample = m_snapshot ? sampleAt(m_snapshot->samples, ns(x)) : std::nullopt;
        if (sample && m_snapshot->samples.step[*sample] >= 0)
            selection().setStep(m_snapshot->samples.step[*sample]);
    });
}

void MemoryPage::changeEvent(QEvent *event)
{
    if (event->type() == QEvent::PaletteChange) {
        for (QAction *action : m_actions)
            action->setIcon(icon(action->data().toString(), palette()));
    }
    Page::changeEvent(event);
}

void MemoryPage::buildActions()
{
    const auto add = [&](const QString &text, const QString &iconName, auto run) {
        auto *action = new QAction(icon(iconName, palette()), text, this);
        action->setData(iconName);
        connect(action, &QAction::triggered, this, run);
        m_actions << action;
    };
    add(tr("Copy table as CSV"), QStringLiteral("edit-copy"),
        [this] { QApplication::clipboard()->setText(m_peakModel->csv()); });
    add(tr("Show chart as table"), QStringLiteral("table"), [this] { m_chart->showTable(); });
    add(tr("Show the table's query"), QStringLiteral("utilities-terminal"), [this] {
        if (!peakSql().isEmpty())
            TextDialog(tr("The query behind the table"), peakSql(), this).exec();
    });
}

QWidget *MemoryPage::buildBar()
{
    auto *bar = new QToolBar(this);
    bar->setIconSize({16, 16});
    bar->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    m_rank = new QComboBox(bar);
    m_place = new QComboBox(bar);
    m_step = new QSpinBox(bar);
    m_step->setLocale(QLocale::c());
    m_step->setRange(-1, -1);
    m_step->setSpecialValueText(tr("highest peak"));
    m_step->setKeyboardTracking(false);
    m_step->setMinimumWidth(m_step->fontMetrics().horizontalAdvance(m_step->specialValueText()) + 44);
    m_step->setToolTip(tr("The step whose peak the table shows; below the first: the one with the highest peak"));
    const auto addField = [&](const QString &label, QWidget *field) {
        if (auto *combo = qobject_cast<QComboBox *>(field))
            combo->setSizeAdjustPolicy(QComboBox::AdjustToContents);
        auto *text = new QLabel(label, bar);
        text->setBuddy(field);
        text->setContentsMargins(4, 0, 4, 0);
        bar->addWidget(text);
        bar->addWidget(field);
    };
    addField(tr("&Rank"), m_rank);
    addField(tr("P&lace"), m_place);
    addField(tr("S&tep"), m_step);
    bar->addSeparator();
    bar->addActions(m_actions);
    connect(m_rank, &QComboBox::activated, this, [this](int index) {
        m_request.process = m_rank->itemData(index).toInt();
        m_request.place.clear();
        read();
    });
    connect(m_place, &QComboBox::activated, this, [this](int index) {
        m_request.place = m_place->itemData(index).toString().toStdString();
        read();
    });
    connect(m_step, &QSpinBox::valueChanged, this, [this](int step) {
        selection().setStep(step == m_step->minimum() ? std::nullopt : std::optional<int64_t>(step));
    });
    return bar;
}

QWidget *MemoryPage::buildTables()
{
    m_peakModel = new PeakTableModel(this);
    m_readoutModel = new ReadoutModel(this);
    auto *left = new QWidget(this);
    auto *layout = new QVBoxLayout(left);
    layout->setContentsMargins(0, 0, 0, 0);
    m_peakTitle = new QLabel(left);
    layout->addWidget(m_peakTitle);
    m_peakTable = makeTable(m_peakModel, tr("Memory at the peak by unit and category"));
    m_peakTable->setSortingEnabled(true);
    m_peakTable->horizontalHeader()->setSortIndicator(-1, Qt::DescendingOrder);
    layout->addWidget(m_peakTable, 1);
    m_peakTitle->setBuddy(m_peakTable);
    connect(m_peakTable, &QTableView::clicked, this, [this](const QModelIndex &index) {
        if (m_peakModel->isUnit(index.row()))
            selection().setUnit(m_peakModel->unitAt(index.row()));
    });
    auto *tables = new QSplitter(this);
    tables->addWidget(left);
    auto *readout = makeTable(m_readoutModel, tr("Every figure at the cursor and at the peak"));
    readout->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    tables->addWidget(readout);
    tables->setChildrenCollapsible(false);
    readout->setMinimumWidth(readout->fontMetrics().averageCharWidth() * 52);
    tables->setStretchFactor(0, 1);
    return tables;
}

QTableView *MemoryPage::makeTable(QAbstractItemModel *model, const QString &name)
{
    auto *table = new QTableView(this);
    table->setModel(model);
    table->setAccessibleName(name);
    table->setSelectionBehavior(QAbstractItemView::SelectRows);
    table->setSelectionMode(QAbstractItemView::SingleSelection);
    table->setShowGrid(false);
    table->setAlternatingRowColors(true);
    table->setWordWrap(false);
    table->verticalHeader()->hide();
    table->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 6);
    table->setMinimumSize(200, 100);
    return table;
}

/// A live recording comes here every other second: an open popup closes when its items are made anew.
static void refill(QComboBox *combo, const QList<std::pair<QString, QVariant>> &items, const QVariant &current)
{
    const QSignalBlocker quiet(combo);
    bool same = combo->count() == items.size();
    for (int i = 0; same && i < combo->count(); ++i)
        same = combo->itemText(i) == items[i].first && combo->itemData(i) == items[i].second;
    if (!same) {
        combo->clear();
        for (const auto &[text, data] : items)
            combo->addItem(text, data);
    }
    combo->setCurrentIndex(combo->findData(current));
}

void MemoryPage::fillChoices()
{
    QList<std::pair<QString, QVariant>> ranks, places;
    for (const store::Index process : m_snapshot->ranks)
        ranks.emplace_back(rankText(process), process);
    for (const std::string &place : m_snapshot->places)
        places.emplace_back(place == "device" ? tr("on the device")
                            : place == "host" ? tr("on the host")
                                              : tr("on the host (%1)").arg(fromView(place)),
                            fromView(place));
    refill(m_rank, ranks, m_snapshot->process);
    refill(m_place, places, fromView(m_snapshot->samples.place));
    if (!isTyping())
        fillSteps();
}

/// A number that is being typed is not in force yet.
bool MemoryPage::isTyping() const
{
    const QString inForce =
        m_step->value() == m_step->minimum() ? m_step->specialValueText() : QString::number(m_step->value());
    return m_step->hasFocus() && m_step->text() != inForce;
}

void MemoryPage::fillSteps()
{
    const QSignalBlocker quiet(m_step);
    const auto &steps = m_snapshot->steps;
    m_step->setRange(steps.empty() ? -1 : static_cast<int>(steps.front()) - 1,
                     steps.empty() ? -1 : static_cast<int>(steps.back()));
    m_step->setValue(m_request.step ? static_cast<int>(*m_request.step) : m_step->minimum());
}

/// Far above what is reserved, a line would only press the curves flat: then a note tells it instead.
bool MemoryPage::isNear(std::optional<int64_t> bytes) const
{
    const auto &reserved = m_snapshot->samples.reservedBytes;
    return bytes && static_cast<double>(*bytes) <=
                        kFarAbove * static_cast<double>(*std::max_element(reserved.begin(), reserved.end()));
}

std::optional<int64_t> MemoryPage::highestProcessBytes() const
{
    const auto &used = m_snapshot->samples.processUsedBytes;
    const int64_t highest = *std::max_element(used.begin(), used.end());
    return highest < 0 ? std::nullopt : std::optional(highest);
}

void MemoryPage::updateNote()
{
    const auto farOnly = [this](std::optional<int64_t> bytes) { return isNear(bytes) ? std::nullopt : bytes; };
    m_note->setText(farAboveText(farOnly(highestProcessBytes()), farOnly(m_snapshot->limitBytes)));
}

void MemoryPage::fillChart()
{
    const store::MemoryColumns &samples = m_snapshot->samples;
    const bool hasReserve = samples.reservedBytes != samples.allocatedBytes; // a CPU's allocator has no pool
    const bool hasProcess = isNear(highestProcessBytes());
    const bool hasLimit = isNear(m_snapshot->limitBytes);
    const TimeRange all{samples.timeNs.front(), samples.timeNs.back()};
    const std::vector<size_t> indices = thinned(samples, m_view.value_or(all), kMostPoints);
    const auto column = [&](const std::vector<int64_t> &bytes) {
        std::vector<double> values;
        values.reserve(indices.size());
        for (const size_t i : indices)
            values.push_back(bytes[i] < 0 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(bytes[i]));
        return values;
    };
    std::vector<double> x;
    std::vector<QString> labels;
    for (const size_t i : indices) {
        x.push_back(static_cast<double>(samples.timeNs[i]) * 1e-9);
        labels.push_back(samples.step[i] < 0 ? QString() : tr("Step %1").arg(samples.step[i]));
    }
    std::vector<std::vector<double>> columns;
    for (const auto &bytes : samples.categoryBytes)
        columns.push_back(column(bytes));
    columns.push_back(column(samples.roundingBytes));
    columns.push_back(column(samples.allocatedBytes));
    if (hasReserve)
        columns.push_back(column(samples.reservedBytes));
    if (hasProcess)
        columns.push_back(column(samples.processUsedBytes));
    if (hasLimit)
        columns.emplace_back(indices.size(), static_cast<double>(*m_snapshot->limitBytes));
    m_chart->setSeries(seriesOf(hasReserve, hasLimit, hasProcess));
    m_chart->setPointLabels(std::move(labels));
    m_chart->setData(std::move(x), std::move(columns));
    m_chart->setSql(samplesSql());
    updateNote();
    if (m_view)
        m_chart->setXRange(
            std::pair(static_cast<double>(m_view->startNs) * 1e-9, static_cast<double>(m_view->endNs) * 1e-9));
}

void MemoryPage::updateTitle()
{
    if (!m_snapshot->peak) {
        m_peakTitle->setText(tr("No step's peak was sampled yet"));
        return;
    }
    const store::MemoryPeak &peak = *m_snapshot->peak;
    m_peakTitle->setText(tr("<b>Peak of step %1</b>: %2 allocated, %3 after the run began")
                             .arg(peak.step)
                             .arg(bytesText(peak.allocatedBytes), durationText(peak.timeNs)));
    m_chart->setMarkers({{static_cast<double>(peak.timeNs) * 1e-9, tr("peak of step %1").arg(peak.step)}});
    m_peakTable->resizeColumnsToContents();
    if (std::exchange(m_freshTable, false)) // a selection made before the columns had their widths may have moved it
        m_peakTable->horizontalScrollBar()->setValue(0);
}

} // namespace shardscope::ui::memory
