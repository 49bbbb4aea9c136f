// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/monitor/events_model.h"

#include "ui/common/chart_ticker.h"

#include <algorithm>

namespace shardscope::ui {

static QString whoOf(store::Index index, const store::Catalog &catalog)
{
    if (index < 0 || static_cast<size_t>(index) >= catalog.processes.size())
        return QStringLiteral("—");
    const store::ProcessInfo &process = catalog.processes[static_cast<size_t>(index)];
    return process.rank ? EventsModel::tr("Rank %1").arg(*process.rank) : EventsModel::tr("Supervisor");
}

void EventsModel::clear()
{
    beginResetModel();
    m_rows.clear();
    endResetModel();
}

void EventsModel::add(const std::vector<store::EventInfo> &events, const store::Catalog &catalog,
                      const RunningTime &time)
{
    m_time = time; // of what has ended it stays what it was: no row has to be shown anew
    if (events.empty())
        return;
    // What another process wrote meanwhile may be older than what is here: each stands at its time.
    for (const store::EventInfo &event : events) {
        const auto place =
            std::ranges::upper_bound(m_rows, event.timeNs, {}, [](const Row &row) { return row.event.timeNs; });
        const auto shown = static_cast<int>(m_rows.end() - place); // the newest is shown first
        beginInsertRows({}, shown, shown);
        m_rows.insert(place, {event, whoOf(event.process, catalog)});
        endInsertRows();
    }
}

const store::EventInfo &EventsModel::eventAt(int row) const
{
    return m_rows[m_rows.size() - 1 - static_cast<size_t>(row)].event;
}

QString EventsModel::nameOf(EventKind kind)
{
    switch (kind) {
    case EventKind::Command:
        return tr("Command");
    case EventKind::Toggle:
        return tr("Toggle");
    case EventKind::Checkpoint:
        return tr("Checkpoint");
    case EventKind::Recording:
        return tr("Recording");
    case EventKind::Warning:
        return tr("Warning");
    case EventKind::Nan:
        return tr("NaN");
    case EventKind::OutOfMemory:
        return tr("Out of memory");
    case EventKind::Death:
        return tr("Death");
    }
    Q_UNREACHABLE();
}

int EventsModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}

int EventsModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QString EventsModel::textOf(const Row &row, int column) const
{
    switch (column) {
    case Time:
        return axisText(ChartUnit::Seconds, m_time.secondsAt(row.event.timeNs));
    case Step:
        return row.event.step ? QString::number(*row.event.step) : QStringLiteral("—");
    case Who:
        return row.who;
    case Kind:
        return nameOf(row.event.kind);
    default:
        return QString::fromStdString(row.event.text);
    }
}

QVariant EventsModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid())
        return {};
    const Row &row = m_rows[m_rows.size() - 1 - static_cast<size_t>(index.row())];
    if (role == Qt::DisplayRole)
        return textOf(row, index.column());
    if (role == Qt::ToolTipRole)
        return QString::fromStdString(row.event.detailJson.empty() ? row.event.text : row.event.detailJson);
    if (role == Qt::TextAlignmentRole && (index.column() == Time || index.column() == Step))
        return QVariant::fromValue(Qt::Alignment(Qt::AlignRight | Qt::AlignVCenter));
    return {};
}

QVariant EventsModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return QAbstractTableModel::headerData(section, orientation, role);
    switch (section) {
    case Time:
        return tr("Time");
    case Step:
        return tr("Step");
    case Who:
        return tr("From");
    case Kind:
        return tr("Kind");
    case Text:
        return tr("What happened");
    }
    return {};
}

} // namespace shardscope::ui
