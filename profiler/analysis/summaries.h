// SPDX-License-Identifier: Apache-2.0
// The parts of the analysis, from what was read once.
#pragma once

#include "profiler/analysis/analysis.h"

#include <memory>
#include <vector>

namespace shardscope::analysis {

/// A rank of an attempt with its steps.
struct RankSteps
{
    store::Index process = store::kNone;
    int64_t attempt = 1;
    int64_t rank = 0;
    std::vector<store::StepInfo> steps; ///< by number
};

/// What all parts of the analysis look at.
struct Input
{
    const store::Recording &recording;
    std::shared_ptr<const store::Catalog> catalog;
    std::vector<RankSteps> ranks; ///< by attempt and rank
    store::CancelToken cancel;
};
Result<Input> readInput(const store::Recording &recording, const store::CancelToken &cancel);

std::vector<AttemptSummary> summarizeAttempts(const Input &input);
std::vector<StepSummary> summarizeSteps(const Input &input);
std::vector<ValidationPoint> validationPoints(const Input &input);
Result<std::vector<RankSummary>> summarizeRanks(const Input &input);
Result<std::vector<CollectiveSummary>> summarizeCollectives(const Input &input);
/// Causes, the most time first. Looks at what the analysis has so far.
std::vector<Finding> findCauses(const Input &input, const Analysis &analysis);

/// The value below which a share of the sorted values lies, by the nearest rank; values must not be empty.
int64_t percentile(const std::vector<int64_t> &sorted, double share);

/// What nccl-tests multiply the algorithm bandwidth with, so that it can be compared with a link's: (n − 1)/n for
/// all-gather, reduce-scatter and all-to-all, 2(n − 1)/n for all-reduce, 1 for the others. n: ranks.
double busFactor(Operation operation, int64_t ranks);
/// The bytes that nccl-tests divide by the time: of the whole result for all-gather, of the whole input for
/// reduce-scatter, else of a rank's buffer.
int64_t bandwidthBytes(Operation operation, int64_t inputBytes, int64_t outputBytes);

} // namespace shardscope::analysis
