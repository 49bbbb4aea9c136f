// SPDX-License-Identifier: Apache-2.0
// What a recording says about a run, as numbers and findings: the one analysis behind `analyze`, the window's cards and
// the reports. Times are nanoseconds, bytes are bytes, an empty optional is "not measured" (null in JSON).
#pragma once

#include "core/base/result.h"
#include "profiler/store/recording.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::analysis {

inline constexpr int kAnalysisSchemaVersion = 1;
/// Exposed communication above this share of the wall time is a finding.
inline constexpr double kExposedShareLimit = 0.25;

struct AttemptSummary
{
    int64_t attempt = 1;
    int64_t worldSize = 0;
    std::vector<int64_t> missingRanks;
    std::optional<int64_t> firstStep;
    std::optional<int64_t> lastStep;
    std::optional<int64_t> firstRecordedStep; ///< the oldest step that still has its spans
    std::optional<int64_t> lastRecordedStep;
    std::string endReason;
    /// Left out of the ranks' steady figures and of findings; empty: none, for the reason in warmUpNote.
    std::vector<int64_t> warmUpSteps;
    std::string warmUpNote; ///< for people: what rates, shares and findings are of
};

struct StepSummary
{
    int64_t attempt = 1;
    int64_t step = 0;
    std::optional<int64_t> config;
    std::optional<StepState> state;
    std::optional<double> loss;
    std::optional<double> gradientNorm;
    std::optional<double> learningRate;
    std::optional<int64_t> tokens;     ///< of all ranks; empty where one is missing
    std::optional<int64_t> durationNs; ///< of the slowest rank
};

struct ValidationPoint
{
    int64_t attempt = 1;
    int64_t step = 0;
    double loss = 0;
};

/// Of some finished steps of one rank.
struct RankFigures
{
    int64_t steps = 0;
    int64_t timedSteps = 0; ///< those of them that are in `sums`: recorded above level off
    std::optional<int64_t> stepMedianNs;
    std::optional<int64_t> stepP99Ns;
    std::optional<double> tokensPerSecond; ///< of this rank
    std::optional<double> mfu;             ///< model FLOP/s ÷ the device's peak
    std::optional<store::StepSums> sums;   ///< empty: no timed step

    /// The mean over the timed steps, of which there is one, of a sum over them.
    int64_t aStep(int64_t sumNs) const { return sumNs / std::max<int64_t>(timedSteps, 1); }
};

/// One rank in one attempt.
struct RankSummary
{
    int64_t attempt = 1;
    int64_t rank = 0;
    std::string device; ///< its name; "": unknown
    RankFigures all;    ///< of all finished steps
    RankFigures steady; ///< without the attempt's warm-up steps
    std::optional<int64_t> peakAllocatedBytes;
    /// At the highest peak; sums to peakAllocatedBytes, with rounding last.
    std::optional<std::array<int64_t, kMemoryCategories + 1>> memoryAtPeakBytes;
    int64_t droppedRecords = 0;
};

/// All calls of one kind: same communicator, operation, unit, phase and dtype. Of the steps that still have spans.
struct CollectiveSummary
{
    std::string communicator;
    Operation operation = Operation::AllGather;
    std::string unit; ///< "": none
    std::optional<Phase> phase;
    std::string dtype;
    int64_t count = 0;      ///< calls, each once for all ranks
    int64_t inputBytes = 0; ///< a call and rank, mean
    int64_t outputBytes = 0;
    std::optional<double> meanNs; ///< transfer
    std::optional<int64_t> p50Ns;
    std::optional<int64_t> p99Ns;
    std::optional<int64_t> waitNs;            ///< sum over the ranks
    std::optional<int64_t> exposedNs;         ///< sum over the ranks
    std::optional<double> algorithmBandwidth; ///< bytes a second
    std::optional<double> busBandwidth;
};

struct Evidence
{
    std::optional<int64_t> attempt;
    std::optional<int64_t> rank;
    std::optional<int64_t> step;
    std::string lane; ///< its name; "": none
    std::string unit;
    std::optional<int64_t> startNs; ///< since the origin
    std::optional<int64_t> endNs;
};

struct Finding
{
    std::string cause; ///< exposed_communication, prefetch_off, straggler, dropped_records, missing_ranks, …
    std::optional<double> share; ///< of the wall time that it concerns
    std::string text;
    std::string remedy;
    std::optional<int64_t> gainNs; ///< at most this much of a step's time, mean; empty: cannot be told
    std::string evidenceSql;       ///< for Recording::sql()
    Evidence evidence;
};

/// The rank of an attempt that the others wait for: in its steady steps it stands least in collectives.
struct WaitedFor
{
    size_t rank = 0;    ///< index into ranks
    int64_t lateNs = 0; ///< a step, mean: what the median of the others stands longer in collectives; > 0
};

struct Analysis
{
    std::string source;
    bool complete = false;
    int64_t originNs = 0;
    int64_t clockUncertaintyNs = 0;
    std::vector<AttemptSummary> attempts;
    std::vector<StepSummary> steps;
    std::vector<ValidationPoint> validation;
    std::vector<RankSummary> ranks;
    std::optional<size_t> slowest;      ///< index into ranks: the longest wall of all steps
    std::optional<WaitedFor> waitedFor; ///< of the newest attempt with times; empty: none waits
    std::vector<CollectiveSummary> collectives;
    std::vector<Finding> findings; ///< the most time first
};

/// Reads all it needs. Works on a live recording, on one with ranks missing, on one without any step.
Result<Analysis> analyze(const store::Recording &recording, const store::CancelToken &cancel = {});

/// `analyze --format json`, one object as docs/contract.md has it (analyze.schema.json beside this file).
std::string toJson(const Analysis &analysis);
/// Tables for a terminal, headed by the run's name.
std::string toText(const Analysis &analysis, std::string_view name);

} // namespace shardscope::analysis
