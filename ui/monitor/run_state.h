// SPDX-License-Identifier: GPL-3.0-or-later
// How a run's state is told: state.json says "done" also of one that was stopped before its last step.
#pragma once

#include "core/run/run_list.h"

#include <QString>

namespace shardscope::ui {

/// "Running", "Stopped".
QString stateName(const run::RunStatus &status);
/// "Running, step 3 of 10", "Stopped at step 44 of 4000".
QString stateText(const run::RunStatus &status);
/// Name of a Breeze icon.
QString stateIcon(const run::RunStatus &status);

} // namespace shardscope::ui
