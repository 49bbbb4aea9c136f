// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/memory/memory_snapshot.h"

#include <QAbstractTableModel>
#include <array>

namespace shardscope::ui::memory {

/// Unit × category at a step's peak. The last rows stay last whatever the order: what belongs to no unit, what the
/// allocator rounds up, and the total, which is the allocator's allocated bytes. Only reads a snapshot in memory.
class PeakTableModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    /// The number itself, in bytes.
    static constexpr int kBytesRole = Qt::UserRole;

    using QAbstractTableModel::QAbstractTableModel;

    void setSnapshot(std::shared_ptr<const MemorySnapshot> snapshot);
    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
    void sort(int column, Qt::SortOrder order) override;

    /// Beside the unit, so that it is in view where there is no room for all categories.
    static constexpr int kTotalColumn = 1;
    static constexpr int kFirstCategory = 2; ///< columns from here on
    QString unitAt(int row) const { return m_rows[static_cast<size_t>(row)].name; }
    bool isUnit(int row) const { return m_rows[static_cast<size_t>(row)].isUnit; }
    /// Bytes, not texts.
    QString csv() const;

private:
    struct Row
    {
        QString name;
        bool isUnit = true;
        int64_t ordinal = 0;
        std::array<int64_t, kMemoryCategories> bytes{};
        int64_t totalBytes = 0;
    };
    void addUnits(const store::MemoryPeak &peak);
    void addSums(const store::MemoryPeak &peak);
    void sortRows();
    int64_t bytesAt(const Row &row, int column) const;

    std::shared_ptr<const MemorySnapshot> m_snapshot;
    std::vector<Row> m_rows;
    std::vector<MemoryCategory> m_columns; ///< those that hold anything
    int m_sortColumn = -1;
    Qt::SortOrder m_sortOrder = Qt::DescendingOrder;
};

} // namespace shardscope::ui::memory
