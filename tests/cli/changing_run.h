// SPDX-License-Identifier: Apache-2.0
// A running job of two real ranks that goes through every mode that its device allows, one change after the other, and
// what has to be true of its recording afterwards. How a change is made (by `set`, by clicks) is the test's.
#pragma once

#include "core/shapes/unit_plan.h"
#include "profiler/store/recording.h"
#include "tests/cli/with_worker.h"

#include <optional>
#include <utility>

namespace shardscope::test {

/// What its user changes of a running job at once.
struct Change
{
    std::string name;                                        ///< for the test
    std::vector<std::pair<std::string, std::string>> values; ///< by key path; empty: back to before the last change
    std::string unit = {};                                   ///< that it is for; empty: the whole model
    int64_t stepsAfter = 0;                                  ///< that the job goes on for before the next one, at least

    bool isUndo() const { return values.empty(); }
};

using Bytes = std::map<std::string, int64_t>; ///< by category

/// What a rank held at the beginning of a step, before anything of it was done, and the most that a sample of that step
/// has of each category.
struct Held
{
    Bytes memory; ///< where it computes: of the GPU or of the host
    Bytes pinned; ///< of the host, beside a GPU
    Bytes file;
    Bytes most; ///< of memory

    static int64_t sum(const Bytes &bytes);
};

/// A figure of each step on both sides of a change, for medians.
struct Sides
{
    std::vector<double> before; ///< since the change before it, the first three left out; the nearest 100
    std::vector<double> after;  ///< the first three left out
};

double median(std::vector<double> values);

class ChangingRun : public WithWorker
{
protected:
    using WithWorker::WithWorker;

    /// Makes a change of the run and returns the first step under it; 0 after a failure.
    virtual int64_t make(const Change &change) = 0;
    /// The job has gone on for the change's stepsAfter.
    virtual void settled(const Change &) {}

    static constexpr const char *kName = "touched";
    /// Starts the job, and a listener to its steps.
    void start();
    void goThroughEveryMode();
    /// Stops the job and opens its recording.
    void stop();
    /// All that is below.
    void expectAllToBeWell();

    /// Its losses are those of a run that nobody touched.
    void expectTheCurveOfAnUntouchedRun();
    /// Parameters and optimizer states at rest are to the byte what the ledger says of each configuration, gathered
    /// weights and gradients at most.
    void expectTheLedgersMemory(int rank);
    void expectRecomputeToSaveActivations(int rank);
    void expectNothingLeftBehind(int rank);
    /// From the tenth step on under a change that is followed by that many, at the beginning of each: in every place.
    void expectReservedMemoryNotToGrow(int rank);
    /// On the CPU, by the order in which things were enqueued, whatever they took: a block's gather against the end of
    /// the computation of the block in front of it, in forward and in backward.
    void expectGathersAhead(int64_t step, bool ahead);
    void expectEveryChangeRecorded();
    void expectCopiesToBeOfTheirUnits();

    /// The first step under a change.
    int64_t firstStep(const std::string &name) const;
    /// By "step", "peak" and "exposed", taken by SQL.
    std::map<std::string, Sides> figuresAround(const std::string &name);
    std::vector<std::vector<store::SqlValue>> query(const std::string &sql);
    std::optional<store::Recording> m_recording; ///< after stop()

private:
    std::vector<Change> changes() const;
    static std::vector<std::string> options(const std::string &steps);
    void waitForStep(int64_t step);
    Held heldAt(int64_t step, int rank);
    /// After a whole step under it.
    Held heldUnder(const std::string &name, int rank) { return heldAt(firstStep(name) + 1, rank); }
    config::RunConfiguration configurationAt(int64_t step);

    static constexpr int64_t kStart = 4;     ///< a step under the settings of the start, with moments
    static constexpr int64_t kSettling = 10; ///< steps after which nothing more is to be reserved
    std::optional<Program> m_run;
    std::optional<Program> m_steps;
    std::vector<std::pair<Change, int64_t>> m_made; ///< and their first steps
    int64_t m_last = 0;                             ///< the job's last step
};

} // namespace shardscope::test
