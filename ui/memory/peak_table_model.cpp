// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/memory/peak_table_model.h"

#include "ui/common/text.h"

#include <QFont>
#include <map>

namespace shardscope::ui::memory {

void PeakTableModel::setSnapshot(std::shared_ptr<const MemorySnapshot> snapshot)
{
    beginResetModel();
    m_snapshot = std::move(snapshot);
    m_rows.clear();
    m_columns.clear();
    if (m_snapshot && m_snapshot->peak) {
        for (size_t i = 0; i < kMemoryCategories; ++i) {
            if (m_snapshot->peak->categoryBytes[i] != 0)
                m_columns.push_back(static_cast<MemoryCategory>(i));
        }
        addUnits(*m_snapshot->peak);
        addSums(*m_snapshot->peak);
        sortRows();
    }
    endResetModel();
}

void PeakTableModel::addUnits(const store::MemoryPeak &peak)
{
    std::map<store::Index, Row> byUnit;
    for (const store::MemoryPeak::Cell &cell : peak.cells) {
        if (cell.unit == store::kNone)
            continue;
        Row &row = byUnit[cell.unit];
        row.bytes[static_cast<size_t>(cell.category)] += cell.bytes;
        row.totalBytes += cell.bytes;
    }
    for (auto &[index, row] : byUnit) {
        const store::UnitEntry &unit = m_snapshot->catalog->units[static_cast<size_t>(index)];
        row.name = QString::fromStdString(unit.name);
        row.ordinal = unit.ordinal;
        m_rows.push_back(std::move(row));
    }
    std::stable_sort(m_rows.begin(), m_rows.end(), [](const Row &a, const Row &b) { return a.ordinal < b.ordinal; });
}

void PeakTableModel::addSums(const store::MemoryPeak &peak)
{
    // What the cells of units leave over belongs to no unit, or (without cells) is not broken down any more.
    Row rest{peak.cells.empty() ? tr("all units (no longer kept apart)") : tr("no unit"), false, 0, peak.categoryBytes,
             0};
    for (const Row &row : m_rows) {
        for (size_t i = 0; i < kMemoryCategories; ++i)
            rest.bytes[i] -= row.bytes[i];
    }
    for (const int64_t bytes : rest.bytes)
        rest.totalBytes += bytes;
    m_rows.push_back(std::move(rest));
    m_rows.push_back({tr("rounding"), false, 0, {}, peak.roundingBytes});
    m_rows.push_back({tr("allocated"), false, 0, peak.categoryBytes, peak.allocatedBytes});
}

int PeakTableModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}

int PeakTableModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() || m_rows.empty() ? 0 : kFirstCategory + static_cast<int>(m_columns.size());
}

int64_t PeakTableModel::bytesAt(const Row &row, int column) const
{
    if (column == kTotalColumn)
        return row.totalBytes;
    return row.bytes[static_cast<size_t>(m_columns[static_cast<size_t>(column - kFirstCategory)])];
}

QVariant PeakTableModel::data(const QModelIndex &index, int role) const
{
    const Row &row = m_rows[static_cast<size_t>(index.row())];
    const bool isTotal = index.row() + 1 == rowCount();
    if (role == Qt::TextAlignmentRole)
        return QVariant(Qt::AlignVCenter | (index.column() == 0 ? Qt::AlignLeft : Qt::AlignRight));
    if (role == Qt::FontRole && isTotal) {
        QFont font;
        font.setBold(true);
        return font;
    }
    if (index.column() == 0)
        return role == Qt::DisplayRole || role == kBytesRole ? QVariant(row.name) : QVariant();
    const int64_t bytes = bytesAt(row, index.column());
    if (role == kBytesRole)
        return static_cast<qlonglong>(bytes);
    if (role == Qt::ToolTipRole)
        return tr("%1 B").arg(bytes);
    if (role == Qt::DisplayRole)
        return bytes == 0 && index.column() != kTotalColumn ? QString() : bytesText(bytes);
    return {};
}

QVariant PeakTableModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return QVariant(Qt::AlignVCenter | (section == 0 ? Qt::AlignLeft : Qt::AlignRight));
    if (role != Qt::DisplayRole)
        return {};
    if (section == 0)
        return tr("Unit");
    return section == kTotalColumn ? tr("Total") : nameOf(m_columns[static_cast<size_t>(section - kFirstCategory)]);
}

void PeakTableModel::sort(int column, Qt::SortOrder order)
{
    Q_EMIT layoutAboutToBeChanged({}, QAbstractItemModel::VerticalSortHint);
    m_sortColumn = column;
    m_sortOrder = order;
    sortRows();
    changePersistentIndexList(persistentIndexList(), QModelIndexList(persistentIndexList().size()));
    Q_EMIT layoutChanged({}, QAbstractItemModel::VerticalSortHint);
}

void PeakTableModel::sortRows()
{
    const auto end = std::find_if(m_rows.begin(), m_rows.end(), [](const Row &row) { return !row.isUnit; });
    const bool up = m_sortOrder == Qt::AscendingOrder;
    std::stable_sort(m_rows.begin(), end, [&](const Row &a, const Row &b) {
        if (m_sortColumn <= 0 || m_sortColumn >= columnCount()) // by name: the order of the forward pass
            return m_sortColumn == 0 && !up ? a.ordinal > b.ordinal : a.ordinal < b.ordinal;
        const int64_t left = bytesAt(a, m_sortColumn), right = bytesAt(b, m_sortColumn);
        return up ? left < right : left > right;
    });
}

QString PeakTableModel::csv() const
{
    QString text = QStringLiteral("unit,total_bytes");
    for (const MemoryCategory category : m_columns)
        text += u',' + fromView(toText(category)) + QStringLiteral("_bytes");
    text += u'\n';
    for (const Row &row : m_rows) {
        QString name = row.name;
        text += u'"' + name.replace(u'"', QStringLiteral("\"\"")) + u'"';
        for (int column = 1; column < columnCount(); ++column)
            text += u',' + QString::number(bytesAt(row, column));
        text += u'\n';
    }
    return text;
}

} // namespace shardscope::ui::memory
