// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/run_list.h"

#include <QString>
#include <optional>

namespace shardscope::gui {

/// What a path or a name stands for: a run's folder (with its state), or one database.
struct OpenTarget
{
    QString path; ///< absolute
    std::optional<run::RunSummary> run;
};

/// Blocks on files: not for the GUI thread. The error says what is there instead and what would do.
Result<OpenTarget> resolveTarget(const QString &pathOrName, const QString &runsDirectory);

} // namespace shardscope::gui
