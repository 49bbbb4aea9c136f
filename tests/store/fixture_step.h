// SPDX-License-Identifier: Apache-2.0
// One step of the fixture as rows; see recording_fixture.h for its times.
#pragma once

#include "recording_fixture.h"

#include <vector>

namespace shardscope::test {

enum FixtureLane : int64_t { kPhases = 1, kMainThread, kCompute, kCommunication, kCopies };

/// Collects the rows of one rank's step.
class FixtureStep
{
public:
    FixtureStep(store::Writer &writer, const FixtureOptions &options, int64_t rank, int64_t number);

    /// Puts everything into the writer, the finished step's row too.
    void write();

private:
    static constexpr int64_t kUs = 1000;

    void writeForward();
    void writeBackward();
    void writeEnd();
    void writeMemory();
    void compute(const char *name, Phase phase, int64_t unit, int64_t us);
    int64_t communicate(Operation operation, Phase phase, int64_t unit, int64_t atUs, int64_t us);
    void span(FixtureLane lane, const std::string &name, SpanCategory category, std::optional<Phase> phase,
              int64_t unit, int64_t atUs, int64_t us, std::optional<int64_t> collective = {},
              std::optional<Operation> operation = {});
    void bracket(const char *name, Phase phase, int64_t unit, int64_t atUs, int64_t us);
    void sample(int64_t atUs, bool isPeak, int64_t gathered, int64_t activations, int64_t gradients);
    void writePeakCells(int64_t memoryId);
    int64_t stepId() const;
    int64_t stepStartNs() const;
    int64_t units() const { return m_options.blocks + 2; }

    store::Writer &m_writer;
    const FixtureOptions &m_options;
    int64_t m_rank;
    int64_t m_number;
    int64_t m_cursorUs = 0;
    int64_t m_nextSpan = 0;
    int64_t m_nextCollective = 0;
    int64_t m_nextMemory = 0;
    std::vector<store::TimedSpan> m_timed;
};

} // namespace shardscope::test
