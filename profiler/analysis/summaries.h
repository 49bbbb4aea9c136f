// SPDX-License-Identifier: Apache-2.0
// The parts of the analysis, from what was read once.
#pragma once

#include "profiler/analysis/analysis.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace shardscope::analysis {

/// A rank of an attempt with its steps.
struct RankSteps
{
    store::Index process = store::kNone;
    int64_t attempt = 1;
    int64_t rank = 0;
    std::vector<store::StepInfo> steps; ///< by number
    int64_t firstSteady = 0;            ///< the number of the first step that is no warm-up

    bool isSteady(const store::StepInfo &step) const { return step.number >= firstSteady; }
    /// " AND s.number >= 2": what keeps a query's step s to the steady ones; "" where all are.
    std::string steadySql() const;
};

/// What an attempt's steady figures leave out.
struct WarmUp
{
    std::vector<int64_t> steps; ///< their numbers
    std::string note;           ///< says so, or why there are none
};

/// What all parts of the analysis look at.
struct Input
{
    const store::Recording &recording;
    std::shared_ptr<const store::Catalog> catalog;
    std::vector<RankSteps> ranks;      ///< by attempt and rank
    std::map<int64_t, WarmUp> warmUps; ///< by attempt
    store::CancelToken cancel;
};
Result<Input> readInput(const store::Recording &recording, const store::CancelToken &cancel);

/// Finds each attempt's warm-up: its first step, in which libraries load their kernels, communicators connect and
/// allocators grow. PyTorch's profiler schedules skip it and HolisticTraceAnalysis drops it: it can take longer than
/// all others together. It counts where fewer than kSteadySteps others have ended, and in a recording of another tool,
/// whose first step need not be the program's.
void findWarmUps(Input &input);
inline constexpr size_t kSteadySteps = 2;

std::vector<AttemptSummary> summarizeAttempts(const Input &input);
std::vector<StepSummary> summarizeSteps(const Input &input);
std::vector<ValidationPoint> validationPoints(const Input &input);
Result<std::vector<RankSummary>> summarizeRanks(const Input &input);
Result<std::vector<CollectiveSummary>> summarizeCollectives(const Input &input);
/// The ranks (indices into `ranks`) of the newest attempt with times in its steady steps.
std::vector<size_t> newestTimedRanks(const std::vector<RankSummary> &ranks);
/// Nothing where a rank of that attempt is missing: it may be the one. Looks at the analysis' attempts and ranks.
std::optional<WaitedFor> findWaitedFor(const Analysis &analysis);
/// Ranks that compute longer, or come late to collectives otherwise.
void findStragglers(const Input &input, const Analysis &analysis, std::vector<Finding> &findings);
/// Causes, the most time first. Looks at what the analysis has so far.
std::vector<Finding> findCauses(const Input &input, const Analysis &analysis);

/// "12.3 %"
std::string percent(double share);

/// The value below which a share of the sorted values lies, by the nearest rank; values must not be empty.
int64_t percentile(const std::vector<int64_t> &sorted, double share);

/// What nccl-tests multiply the algorithm bandwidth with, so that it can be compared with a link's: (n − 1)/n for
/// all-gather, reduce-scatter and all-to-all, 2(n − 1)/n for all-reduce, 1 for the others. n: ranks.
double busFactor(Operation operation, int64_t ranks);
/// The bytes that nccl-tests divide by the time: of the whole result for all-gather, of the whole input for
/// reduce-scatter, else of a rank's buffer.
int64_t bandwidthBytes(Operation operation, int64_t inputBytes, int64_t outputBytes);

} // namespace shardscope::analysis
