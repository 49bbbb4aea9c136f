// SPDX-License-Identifier: GPL-3.0-or-later
// The command line that does what the form says: the window starts this and nothing else.
#pragma once

#include "core/config/run_configuration.h"

#include <QString>
#include <QStringList>

namespace shardscope::ui {

/// Arguments of shardscope-cli: options where there are some for a key, --set for the others. `run` and --out lead.
QStringList runArguments(const config::RunConfiguration &configuration, const QString &runFolder);

/// A word as POSIX shells read it back: quoted where it has to be.
QString shellQuoted(const QString &word);
/// "shardscope-cli run --ranks 2 …", to be copied into a terminal.
QString shellLine(const QString &program, const QStringList &arguments);

} // namespace shardscope::ui
