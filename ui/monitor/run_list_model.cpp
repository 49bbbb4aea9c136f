// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/monitor/run_list_model.h"

#include "ui/common/paths.h"
#include "ui/common/text.h"
#include "ui/monitor/run_state.h"

#include <algorithm>

namespace shardscope::ui {

static bool isSame(const run::RunSummary &a, const run::RunSummary &b)
{
    return a.folder.root() == b.folder.root();
}

void RunListModel::update(const RunList &runs)
{
    for (size_t row = m_runs.size(); row-- > 0;) {
        if (std::none_of(runs.begin(), runs.end(), [&](const auto &run) { return isSame(run, m_runs[row]); })) {
            beginRemoveRows({}, static_cast<int>(row), static_cast<int>(row));
            m_runs.erase(m_runs.begin() + static_cast<ptrdiff_t>(row));
            endRemoveRows();
        }
    }
    for (size_t row = 0; row < runs.size(); ++row) {
        const auto here = m_runs.begin() + static_cast<ptrdiff_t>(row);
        const auto found = std::find_if(here, m_runs.end(), [&](const auto &run) { return isSame(run, runs[row]); });
        if (found == m_runs.end()) {
            beginInsertRows({}, static_cast<int>(row), static_cast<int>(row));
            m_runs.insert(here, runs[row]);
            endInsertRows();
            continue;
        }
        if (found != here) {
            const int from = static_cast<int>(found - m_runs.begin());
            beginMoveRows({}, from, from, {}, static_cast<int>(row));
            std::rotate(here, found, found + 1);
            endMoveRows();
        }
        replaceRow(row, runs[row]);
    }
}

void RunListModel::replaceRow(size_t row, const run::RunSummary &run)
{
    m_runs[row] = run;
    const QModelIndex changed = index(static_cast<int>(row));
    Q_EMIT dataChanged(changed, changed);
}

const run::RunSummary *RunListModel::runAt(const QModelIndex &index) const
{
    return index.isValid() && index.model() == this ? &m_runs[static_cast<size_t>(index.row())] : nullptr;
}

QModelIndex RunListModel::indexOf(const QString &folder) const
{
    for (size_t row = 0; row < m_runs.size(); ++row) {
        if (fromPath(m_runs[row].folder.root()) == folder)
            return index(static_cast<int>(row));
    }
    return {};
}

int RunListModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_runs.size());
}

QString RunListModel::speedLine(const run::RunSummary &run)
{
    const run::RunStatus &status = run.status;
    if (!run.problem.empty())
        return tr("unreadable");
    QStringList parts;
    if (status.loss)
        parts << lossText(status.loss);
    if (status.tokensPerSecond)
        parts << tr("%1 tok/s").arg(countText(*status.tokensPerSecond));
    return parts.isEmpty() ? stateName(status) : parts.join(QStringLiteral(" · "));
}

QString RunListModel::memoryLine(const run::RunSummary &run)
{
    const run::RunStatus &status = run.status;
    QStringList parts;
    if (status.peakAllocatedBytes)
        parts << bytesText(*status.peakAllocatedBytes);
    if (status.exposedCommunicationShare)
        parts << (status.ofRankZero() ? tr("%1 exposed (rank 0)") : tr("%1 exposed"))
                     .arg(shareText(*status.exposedCommunicationShare));
    return parts.join(QStringLiteral(" · "));
}

static QString toolTip(const run::RunSummary &run)
{
    QStringList lines{QString::fromStdString(run.shownName()), fromPath(run.folder.root())};
    if (!run.problem.empty()) {
        lines << QString::fromStdString(run.problem);
        return lines.join(u'\n');
    }
    const run::RunStatus &status = run.status;
    lines << stateText(status);
    if (status.failure)
        lines << QString::fromStdString(status.failure->text).section(u'\n', 0, 2);
    return lines.join(u'\n');
}

QVariant RunListModel::data(const QModelIndex &index, int role) const
{
    const run::RunSummary *run = runAt(index);
    if (!run)
        return {};
    switch (role) {
    case Qt::DisplayRole:
        return QString::fromStdString(run->shownName());
    case Qt::ToolTipRole:
        return toolTip(*run);
    case Qt::AccessibleTextRole:
        return QStringList{QString::fromStdString(run->shownName()), stateName(run->status), speedLine(*run),
                           memoryLine(*run)}
            .join(QStringLiteral(", "));
    case FolderRole:
        return fromPath(run->folder.root());
    case StateRole:
        return static_cast<int>(run->problem.empty() ? run->status.state : RunState::Lost);
    case IconRole:
        return run->problem.empty() ? stateIcon(run->status) : QStringLiteral("dialog-warning");
    case LossTailRole:
        return QVariant::fromValue(QList<double>(run->status.lossTail.begin(), run->status.lossTail.end()));
    default:
        return {};
    }
}

} // namespace shardscope::ui
