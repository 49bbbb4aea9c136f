// SPDX-License-Identifier: Apache-2.0
// A run's status as lines for a person.
#pragma once

#include "core/run/run_list.h"
#include "core/run/run_status.h"

#include <string>
#include <vector>

namespace shardscope::cli {

/// "step 214/1000  loss 2.3451  18.2 k tok/s  412 ms/step  peak 1.21 GiB  exposed 12 %". What was not measured is left
/// out. "exposed 12 % (rank 0)" where no supervisor knows the others'.
std::string stepLine(const run::RunStatus &status);
/// The same with a bar before and the time left after it, for a terminal.
std::string progressLine(const run::RunStatus &status);
/// Several lines: state, figures, failure.
std::string describe(const run::RunSummary &summary);
/// What went wrong and the rank's last lines, for stderr.
std::string failureText(const run::RunFolder &folder, const run::RunStatus &status);
/// A table of all runs.
std::string runTable(const std::vector<run::RunSummary> &runs);

} // namespace shardscope::cli
