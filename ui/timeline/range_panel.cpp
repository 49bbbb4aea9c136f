// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/range_panel.h"

#include "ui/common/icons.h"
#include "ui/common/text.h"

#include <QApplication>
#include <QClipboard>
#include <QHeaderView>
#include <QLabel>
#include <QRegularExpression>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>

namespace shardscope::ui::timeline {

namespace {

QString rangeText(TimeRange range)
{
    const int64_t digitsNs = std::max<int64_t>(1, range.durationNs() / 1000);
    int64_t power = 1;
    while (power * 10 <= digitsNs)
        power *= 10;
    return RangePanel::tr("%1 long, from %2")
        .arg(durationText(range.durationNs()), timeMarkText(range.startNs / power * power, power));
}

QString csvOf(const QAbstractItemModel &model)
{
    QString text;
    const auto cell = [](QString value) {
        return value.contains(QRegularExpression(QStringLiteral("[\",\n]")))
                   ? u'"' + value.replace(u'"', QStringLiteral("\"\"")) + u'"'
                   : value;
    };
    for (int column = 0; column < model.columnCount(); ++column)
        text += (column ? "," : "") + cell(model.headerData(column, Qt::Horizontal, Qt::DisplayRole).toString());
    text += u'\n';
    for (int row = 0; row < model.rowCount(); ++row) {
        for (int column = 0; column < model.columnCount(); ++column)
            text += (column ? "," : "") + cell(model.index(row, column).data(kSortRole).toString());
        text += u'\n';
    }
    return text;
}

} // namespace

RangePanel::RangePanel(QWidget *parent)
    : QWidget(parent)
    , m_ranks(new RankSumsModel(this))
    , m_top(new TopSpansModel(this))
    , m_title(new QLabel(this))
    , m_rankTable(makeTable(m_ranks, tr("Time of the range by rank")))
    , m_topTable(makeTable(m_top, tr("Spans that took most of the range")))
{
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 4, 8, 8);
    layout->setSpacing(4);
    layout->addLayout(makeTitle());
    auto *tables = new QSplitter(this);
    tables->addWidget(m_rankTable);
    tables->addWidget(m_topTable);
    tables->setChildrenCollapsible(false);
    layout->addWidget(tables, 1);
    connect(m_topTable, &QTableView::doubleClicked, this, [this](const QModelIndex &index) {
        Q_EMIT searchRequested(index.siblingAtColumn(TopSpansModel::Name).data().toString());
    });
}

void RangePanel::changeEvent(QEvent *event)
{
    if (event->type() == QEvent::PaletteChange)
        m_close->setIcon(icon(QStringLiteral("window-close"), palette()));
    QWidget::changeEvent(event);
}

QLayout *RangePanel::makeTitle()
{
    auto *layout = new QHBoxLayout;
    layout->addWidget(m_title, 1);
    auto *copy = new QToolButton(this);
    copy->setText(tr("Copy as CSV"));
    copy->setToolTip(tr("Copy both tables, times in nanoseconds"));
    copy->setAutoRaise(true);
    connect(copy, &QToolButton::clicked, this, [this] { QApplication::clipboard()->setText(csv()); });
    layout->addWidget(copy);
    m_close = new QToolButton(this);
    m_close->setIcon(icon(QStringLiteral("window-close"), palette()));
    m_close->setToolTip(tr("Clear the range (Esc)"));
    m_close->setAutoRaise(true);
    connect(m_close, &QToolButton::clicked, this, &RangePanel::closed);
    layout->addWidget(m_close);
    return layout;
}

QTableView *RangePanel::makeTable(QAbstractItemModel *model, const QString &name)
{
    auto *table = new QTableView(this);
    auto *sorted = new QSortFilterProxyModel(table);
    sorted->setSourceModel(model);
    sorted->setSortRole(kSortRole);
    table->setModel(sorted);
    table->setAccessibleName(name);
    table->setSortingEnabled(true);
    table->sortByColumn(-1, Qt::DescendingOrder);
    table->setSelectionBehavior(QAbstractItemView::SelectRows);
    table->setWordWrap(false);
    table->setShowGrid(false);
    table->setAlternatingRowColors(true);
    table->verticalHeader()->hide();
    table->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 6);
    table->setMinimumSize(160, 80);
    return table;
}

void RangePanel::setBusy(TimeRange range)
{
    m_title->setText(tr("<b>Range</b> %1: adding up…").arg(rangeText(range)));
}

void RangePanel::setSummary(std::shared_ptr<const RangeSummary> summary)
{
    m_title->setText(tr("<b>Range</b> %1").arg(rangeText(summary->range)));
    const bool first = m_ranks->rowCount() == 0;
    m_ranks->setSummary(summary);
    m_top->setSummary(summary);
    if (!first)
        return;
    m_rankTable->resizeColumnsToContents();
    m_topTable->resizeColumnsToContents();
    m_topTable->setColumnWidth(TopSpansModel::Name, std::min(210, m_topTable->columnWidth(TopSpansModel::Name)));
}

QString RangePanel::csv() const
{
    return csvOf(*m_ranks) + u'\n' + csvOf(*m_top);
}

} // namespace shardscope::ui::timeline
