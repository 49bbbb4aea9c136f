// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/common/chart_table.h"

#include "core/base/text.h"
#include "ui/common/chart_ticker.h"

#include <QApplication>
#include <QClipboard>
#include <QDialogButtonBox>
#include <QHeaderView>
#include <QPushButton>
#include <QTableView>
#include <QVBoxLayout>
#include <cmath>

namespace shardscope::ui {

ChartTableModel::ChartTableModel(std::vector<Column> columns, QObject *parent)
    : QAbstractTableModel(parent)
    , m_columns(std::move(columns))
{
}

int ChartTableModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() || m_columns.empty() ? 0 : static_cast<int>(m_columns.front().values.size());
}

int ChartTableModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_columns.size());
}

QVariant ChartTableModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid())
        return {};
    const Column &column = m_columns[static_cast<size_t>(index.column())];
    const double value = column.values[static_cast<size_t>(index.row())];
    if (role == Qt::DisplayRole)
        return axisText(column.unit, value);
    if (role == Qt::TextAlignmentRole)
        return QVariant::fromValue(Qt::Alignment(Qt::AlignRight | Qt::AlignVCenter));
    return {};
}

QVariant ChartTableModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation == Qt::Horizontal && role == Qt::DisplayRole && section < columnCount())
        return m_columns[static_cast<size_t>(section)].title;
    return QAbstractTableModel::headerData(section, orientation, role);
}

/// The unit of the raw numbers, as in the contract's names.
static QString unitSuffix(ChartUnit unit)
{
    switch (unit) {
    case ChartUnit::Seconds:
        return QStringLiteral(" (s)");
    case ChartUnit::Bytes:
        return QStringLiteral(" (bytes)");
    case ChartUnit::Duration:
        return QStringLiteral(" (ns)");
    case ChartUnit::Share:
    case ChartUnit::Number:
    case ChartUnit::Count:
        break;
    }
    return {};
}

static QString quoted(QString field)
{
    if (field.contains(u',') || field.contains(u'"') || field.contains(u'\n'))
        field = u'"' + field.replace(u'"', QLatin1String("\"\"")) + u'"';
    return field;
}

QString ChartTableModel::csv() const
{
    QStringList fields;
    for (const Column &column : m_columns)
        fields << quoted(column.title + unitSuffix(column.unit));
    QString text = fields.join(u',') + u'\n';
    for (int row = 0; row < rowCount(); ++row) {
        fields.clear();
        for (const Column &column : m_columns) {
            const double value = column.values[static_cast<size_t>(row)];
            fields << (std::isnan(value) ? QString() : QString::fromStdString(formatDouble(value)));
        }
        text += fields.join(u',') + u'\n';
    }
    return text;
}

ChartTableDialog::ChartTableDialog(const QString &title, std::vector<ChartTableModel::Column> columns, QWidget *parent)
    : QDialog(parent)
{
    setWindowTitle(title);
    setAttribute(Qt::WA_DeleteOnClose);
    auto *model = new ChartTableModel(std::move(columns), this);
    auto *table = new QTableView(this);
    table->setAccessibleName(title);
    table->setModel(model);
    table->setAlternatingRowColors(true);
    table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    table->verticalHeader()->hide();
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    auto *copy = buttons->addButton(tr("Copy as CSV"), QDialogButtonBox::ActionRole);
    connect(copy, &QPushButton::clicked, this, [model] { QApplication::clipboard()->setText(model->csv()); });
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    auto *layout = new QVBoxLayout(this);
    layout->addWidget(table);
    layout->addWidget(buttons);
    resize(720, 480);
}

} // namespace shardscope::ui
