// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/analysis/summaries.h"

namespace shardscope::analysis {

/// The step of a rank in which most communication lay bare, and in it the longest such span: lane, unit, start, end.
/// Only rank and attempt where no step has kept its spans.
Evidence worstExposedCommunication(const Input &input, const RankSteps &rank);

} // namespace shardscope::analysis
