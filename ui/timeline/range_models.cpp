// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/range_models.h"

#include "ui/common/text.h"

namespace shardscope::ui::timeline {

namespace {

constexpr Qt::Alignment kNumber = Qt::AlignRight | Qt::AlignVCenter;
constexpr Qt::Alignment kText = Qt::AlignLeft | Qt::AlignVCenter;

} // namespace

void RankSumsModel::setSummary(std::shared_ptr<const RangeSummary> summary)
{
    beginResetModel();
    m_summary = std::move(summary);
    endResetModel();
}

int RankSumsModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() || !m_summary ? 0 : static_cast<int>(m_summary->ranks.size());
}

QVariant RankSumsModel::data(const QModelIndex &index, int role) const
{
    const RangeSummary::Rank &rank = m_summary->ranks[static_cast<size_t>(index.row())];
    const ActivitySums &sums = rank.sums;
    if (role == Qt::TextAlignmentRole)
        return QVariant(index.column() == Rank ? kText : kNumber);
    if (role != Qt::DisplayRole && role != kSortRole)
        return {};
    if (index.column() == Rank)
        return role == kSortRole ? QVariant(rank.rank) : QVariant(QString::fromStdString(rank.label));
    if (index.column() == ExposedShare) {
        const double share =
            sums.wallNs > 0 ? static_cast<double>(sums.exposedCommunicationNs) / static_cast<double>(sums.wallNs) : 0;
        return role == kSortRole ? QVariant(share) : QVariant(shareText(share));
    }
    const int64_t values[Columns] = {0,
                                     sums.computeNs,
                                     sums.communicationNs,
                                     sums.overlappedCommunicationNs(),
                                     sums.exposedCommunicationNs,
                                     0,
                                     sums.copyNs,
                                     sums.overlappedCopyNs(),
                                     sums.exposedCopyNs,
                                     sums.idleNs};
    const int64_t ns = values[index.column()];
    return role == kSortRole ? QVariant(static_cast<qlonglong>(ns)) : QVariant(durationText(ns));
}

QVariant RankSumsModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return QVariant(section == Rank ? kText : kNumber);
    const QString names[Columns] = {tr("Rank"),    tr("Compute"),       tr("Communication"), tr("overlapped"),
                                    tr("exposed"), tr("exposed share"), tr("Copies"),        tr("overlapped"),
                                    tr("exposed"), tr("Idle")};
    const QString explanations[Columns] = {
        {},
        tr("Any computation, once"),
        tr("Any communication, once, whatever runs beside it"),
        tr("Communication with computation beside it"),
        tr("Communication with no computation beside it"),
        tr("Exposed communication ÷ length of the range"),
        tr("Any copy, once"),
        tr("Copies with computation or communication beside them"),
        tr("Copies with neither beside them"),
        tr("Nothing of these: compute + exposed communication + exposed copies + idle is the range"),
    };
    if (role == Qt::DisplayRole)
        return names[section];
    return role == Qt::ToolTipRole ? QVariant(explanations[section]) : QVariant();
}

void TopSpansModel::setSummary(std::shared_ptr<const RangeSummary> summary)
{
    beginResetModel();
    m_summary = std::move(summary);
    endResetModel();
}

int TopSpansModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() || !m_summary ? 0 : static_cast<int>(m_summary->totals.size());
}

QString TopSpansModel::nameAt(int row) const
{
    return QString::fromStdString(m_summary->totals[static_cast<size_t>(row)].name);
}

QVariant TopSpansModel::numberOf(const RangeSummary::Total &total, int column) const
{
    switch (column) {
    case Count:
        return static_cast<qulonglong>(total.count);
    case Total:
        return static_cast<qlonglong>(total.totalNs);
    case Self:
        return static_cast<qlonglong>(total.selfNs);
    case Mean:
        return static_cast<qlonglong>(total.totalNs / static_cast<int64_t>(std::max<uint64_t>(1, total.count)));
    case Longest:
        return static_cast<qlonglong>(total.longestNs);
    default:
        return {};
    }
}

QVariant TopSpansModel::data(const QModelIndex &index, int role) const
{
    const RangeSummary::Total &total = m_summary->totals[static_cast<size_t>(index.row())];
    const int column = index.column();
    if (role == Qt::TextAlignmentRole)
        return QVariant(column >= Count ? kNumber : kText);
    if (role == Qt::ToolTipRole && column == Name)
        return QString::fromStdString(total.name);
    if (role != Qt::DisplayRole && role != kSortRole)
        return {};
    switch (column) {
    case Name:
        return QString::fromStdString(total.name);
    case Category:
        return nameOf(total.category);
    case Lanes:
        return total.kind == LaneKind::Stream  ? tr("streams")
               : total.kind == LaneKind::Phase ? tr("phases")
                                               : tr("threads");
    default:
        break;
    }
    const QVariant number = numberOf(total, column);
    if (role == kSortRole)
        return number;
    return column == Count ? number.toString() : durationText(static_cast<int64_t>(number.toLongLong()));
}

QVariant TopSpansModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return QVariant(section >= Count ? kNumber : kText);
    const QString names[Columns] = {tr("Spans"), tr("Category"), tr("In"),   tr("Count"),
                                    tr("Total"), tr("Self"),     tr("Mean"), tr("Longest")};
    if (role == Qt::DisplayRole)
        return names[section];
    if (role == Qt::ToolTipRole && section == Self)
        return tr("Without the spans nested in them");
    return {};
}

} // namespace shardscope::ui::timeline
