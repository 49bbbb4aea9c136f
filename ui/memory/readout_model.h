// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/memory/memory_snapshot.h"

#include <QAbstractTableModel>

namespace shardscope::ui::memory {

/// Every figure of two samples, side by side: at the cursor, and at the step's peak.
class ReadoutModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column { Figure, AtCursor, AtPeak, Columns };
    using QAbstractTableModel::QAbstractTableModel;

    void setSnapshot(std::shared_ptr<const MemorySnapshot> snapshot);
    /// Empty: no cursor.
    void setCursor(std::optional<int64_t> timeNs);
    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override { return parent.isValid() ? 0 : Columns; }
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    std::optional<int64_t> bytesOf(int row, std::optional<size_t> sample) const;
    QString nameOfRow(int row) const;

    std::shared_ptr<const MemorySnapshot> m_snapshot;
    std::optional<int64_t> m_cursorNs;
    std::optional<size_t> m_cursorSample;
    std::optional<size_t> m_peakSample;
};

} // namespace shardscope::ui::memory
