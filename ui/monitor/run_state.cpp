// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/monitor/run_state.h"

#include "ui/common/text.h"

#include <QCoreApplication>

namespace shardscope::ui {

static QString stateTr(const char *text)
{
    return QCoreApplication::translate("RunState", text);
}

QString stateName(const run::RunStatus &status)
{
    return status.stoppedEarly() ? stateTr("Stopped") : nameOf(status.state);
}

QString stateText(const run::RunStatus &status)
{
    if (status.stoppedEarly())
        return stateTr("Stopped at step %1 of %2").arg(status.step.value_or(0)).arg(*status.steps);
    if (status.step && status.steps)
        return stateTr("%1, step %2 of %3").arg(nameOf(status.state)).arg(*status.step).arg(*status.steps);
    return nameOf(status.state);
}

QString stateIcon(const run::RunStatus &status)
{
    switch (status.state) {
    case RunState::Queued:
    case RunState::Starting:
        return QStringLiteral("chronometer");
    case RunState::Running:
        return QStringLiteral("media-playback-start");
    case RunState::Paused:
        return QStringLiteral("media-playback-pause");
    case RunState::Stopping:
        return QStringLiteral("media-playback-stop");
    case RunState::Done: // a tick is for what is complete
        return status.stoppedEarly() ? QStringLiteral("media-playback-stop") : QStringLiteral("dialog-ok-apply");
    case RunState::Failed:
        return QStringLiteral("dialog-error");
    case RunState::Lost:
        return QStringLiteral("dialog-warning");
    }
    Q_UNREACHABLE();
}

} // namespace shardscope::ui
