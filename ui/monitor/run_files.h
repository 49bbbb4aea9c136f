// SPDX-License-Identifier: GPL-3.0-or-later
// What the sidebar does to a run's folder. Each works in the background and says how it went in the receiver's thread.
#pragma once

#include "core/base/result.h"

#include <QObject>
#include <QString>
#include <functional>

namespace shardscope::ui {

using RunFileDone = std::function<void(Result<>)>;

/// Writes the shown name into user.json; the folder keeps its name.
void renameRun(QObject *receiver, const QString &folder, const QString &shownName, RunFileDone done);
/// Moves the folder to the desktop's bin. Refuses a run that goes on.
void moveRunToBin(QObject *receiver, const QString &folder, RunFileDone done);
/// The file manager with the folder selected, over D-Bus; without one, the folder itself is opened.
void showInFileManager(QObject *receiver, const QString &folder, RunFileDone done);

} // namespace shardscope::ui
