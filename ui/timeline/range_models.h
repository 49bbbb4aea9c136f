// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/range_summary.h"

#include <QAbstractTableModel>

namespace shardscope::ui::timeline {

/// Both sort by what Qt::UserRole gives: the numbers themselves.
inline constexpr int kSortRole = Qt::UserRole;

/// Busy, overlapped and exposed time by rank. Only reads a summary in memory.
class RankSumsModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column {
        Rank,
        Compute,
        Communication,
        Overlapped,
        Exposed,
        ExposedShare,
        Copy,
        OverlappedCopy,
        ExposedCopy,
        Idle,
        Columns
    };
    using QAbstractTableModel::QAbstractTableModel;

    void setSummary(std::shared_ptr<const RangeSummary> summary);
    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override { return parent.isValid() ? 0 : Columns; }
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    std::shared_ptr<const RangeSummary> m_summary;
};

/// The spans that took most of a range, by name.
class TopSpansModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column { Name, Category, Lanes, Count, Total, Self, Mean, Longest, Columns };
    using QAbstractTableModel::QAbstractTableModel;

    void setSummary(std::shared_ptr<const RangeSummary> summary);
    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override { return parent.isValid() ? 0 : Columns; }
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
    QString nameAt(int row) const;

private:
    QVariant numberOf(const RangeSummary::Total &total, int column) const;
    std::shared_ptr<const RangeSummary> m_summary;
};

} // namespace shardscope::ui::timeline
