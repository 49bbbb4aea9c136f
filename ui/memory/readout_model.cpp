// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/memory/readout_model.h"

#include "ui/common/colors.h"
#include "ui/common/text.h"

#include <QApplication>
#include <QFont>
#include <QPixmap>

namespace shardscope::ui::memory {

namespace {

/// Below the categories.
enum Extra { Rounding, Allocated, PendingFree, Active, Reserved, ProcessUsed, DeviceUsed, Limit, Extras };

constexpr int kRows = static_cast<int>(kMemoryCategories) + Extras;

} // namespace

void ReadoutModel::setSnapshot(std::shared_ptr<const MemorySnapshot> snapshot)
{
    beginResetModel();
    m_snapshot = std::move(snapshot);
    m_peakSample.reset();
    m_cursorSample.reset();
    if (m_snapshot) {
        if (m_cursorNs)
            m_cursorSample = sampleAt(m_snapshot->samples, *m_cursorNs);
        const auto &ids = m_snapshot->samples.memoryId;
        const auto found = m_snapshot->peak ? std::find(ids.begin(), ids.end(), m_snapshot->peak->memoryId) : ids.end();
        if (found != ids.end() && m_snapshot->peak->place == m_snapshot->samples.place)
            m_peakSample = static_cast<size_t>(found - ids.begin());
    }
    endResetModel();
}

void ReadoutModel::setCursor(std::optional<int64_t> timeNs)
{
    m_cursorNs = timeNs;
    m_cursorSample = timeNs && m_snapshot ? sampleAt(m_snapshot->samples, *timeNs) : std::nullopt;
    if (rowCount() > 0)
        Q_EMIT dataChanged(index(0, AtCursor), index(rowCount() - 1, AtCursor));
}

int ReadoutModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() || !m_snapshot ? 0 : kRows;
}

std::optional<int64_t> ReadoutModel::bytesOf(int row, std::optional<size_t> sample) const
{
    const int extra = row - static_cast<int>(kMemoryCategories);
    if (extra == Limit)
        return m_snapshot->limitBytes;
    if (!sample)
        return std::nullopt;
    const store::MemoryColumns &samples = m_snapshot->samples;
    if (extra < 0)
        return samples.categoryBytes[static_cast<size_t>(row)][*sample];
    const std::vector<int64_t> *columns[] = {
        &samples.roundingBytes, &samples.allocatedBytes,   &samples.pendingFreeBytes, &samples.activeBytes,
        &samples.reservedBytes, &samples.processUsedBytes, &samples.deviceUsedBytes};
    const int64_t bytes = (*columns[extra])[*sample];
    return bytes < 0 ? std::nullopt : std::optional(bytes);
}

QString ReadoutModel::nameOfRow(int row) const
{
    const int extra = row - static_cast<int>(kMemoryCategories);
    if (extra < 0)
        return nameOf(static_cast<MemoryCategory>(row));
    const QString names[Extras] = {
        tr("rounding"), tr("allocated: the sum"),  tr("waiting for a stream"), tr("active"),
        tr("reserved"), tr("used by the process"), tr("used on the device"),   tr("the device's memory")};
    return names[extra];
}

QVariant ReadoutModel::data(const QModelIndex &index, int role) const
{
    const int extra = index.row() - static_cast<int>(kMemoryCategories);
    if (role == Qt::TextAlignmentRole)
        return QVariant(Qt::AlignVCenter | (index.column() == Figure ? Qt::AlignLeft : Qt::AlignRight));
    if (role == Qt::FontRole && extra == Allocated) {
        QFont font;
        font.setBold(true);
        return font;
    }
    if (role == Qt::DecorationRole && index.column() == Figure && extra <= Rounding) {
        const Colors &colors = Colors::of(QApplication::palette());
        QPixmap swatch(10, 10);
        swatch.fill(extra < 0 ? colors.category(static_cast<MemoryCategory>(index.row())) : colors.rounding());
        return swatch;
    }
    if (role != Qt::DisplayRole)
        return {};
    if (index.column() == Figure)
        return nameOfRow(index.row());
    return bytesText(bytesOf(index.row(), index.column() == AtCursor ? m_cursorSample : m_peakSample));
}

QVariant ReadoutModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return QVariant(Qt::AlignVCenter | (section == Figure ? Qt::AlignLeft : Qt::AlignRight));
    const QString names[Columns] = {tr("Memory"), tr("At cursor"), tr("At peak")};
    return role == Qt::DisplayRole ? QVariant(names[section]) : QVariant();
}

} // namespace shardscope::ui::memory
