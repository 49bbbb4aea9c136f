// SPDX-License-Identifier: Apache-2.0
#include "app/cli/output.h"
#include "app/cli/status_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace shardscope;
using namespace shardscope::cli;
using testing::HasSubstr;

static run::RunStatus halfway()
{
    run::RunStatus status;
    status.state = RunState::Running;
    status.step = 50;
    status.steps = 100;
    status.loss = 2.34567;
    status.tokensPerSecond = 18'234.4;
    status.stepNs = 412'000'000;
    status.peakAllocatedBytes = 1'300'000'000;
    status.exposedCommunicationShare = 0.123;
    status.ranks = {{.rank = 0}, {.rank = 1}};
    return status;
}

TEST(StepLine, hasWhatWasMeasured)
{
    EXPECT_EQ(stepLine(halfway()), "step 50/100  loss 2.3457  18.2 k tok/s  412 ms/step  peak 1.21 GiB  exposed 12 %");
    run::RunStatus alone = halfway();
    alone.ranks.clear(); // rank 0 writes state.json, and does not know the others' share
    EXPECT_THAT(stepLine(alone), testing::EndsWith("exposed 12 % (rank 0)"));
    run::RunStatus little;
    little.step = 3;
    EXPECT_EQ(stepLine(little), "step 3/?");
    auto skipped = little;
    skipped.stepState = StepState::Skipped;
    skipped.loss = 2;
    skipped.lossScale = 32768;
    skipped.skippedSteps = 4;
    EXPECT_EQ(stepLine(skipped), "step 3/?  skipped  loss 2.0000  scale 32768  4 skipped");
}

TEST(ProgressLine, showsHowFarAndHowLong)
{
    EXPECT_EQ(progressLine(halfway()).substr(0, std::string("[████████········] ").size()), "[████████········] ");
    EXPECT_THAT(progressLine(halfway()), HasSubstr("20.6 s left"));
    run::RunStatus paused = halfway();
    paused.state = RunState::Paused;
    EXPECT_THAT(progressLine(paused), HasSubstr("(paused)"));
    EXPECT_THAT(progressLine({}), HasSubstr("················"));
}

TEST(StateOfARun, isStoppedWhereItEndedBeforeItsLastStep)
{
    run::RunSummary run{run::RunFolder("/runs/a"), {}, halfway(), {}};
    run.status.state = RunState::Done;
    EXPECT_THAT(describe(run), HasSubstr("a  stopped at step 50 of 100\n"));
    EXPECT_THAT(runTable({run}), HasSubstr("a    stopped  50/100"));
    EXPECT_THAT(progressLine(run.status), HasSubstr("(stopped)"));
    run.status.step = 100;
    EXPECT_THAT(describe(run), HasSubstr("a  done\n"));
    EXPECT_THAT(runTable({run}), HasSubstr("a    done   100/100"));
    EXPECT_THAT(progressLine(run.status), HasSubstr("(done)"));
}

TEST(FailureText, namesRankLinesAndLog)
{
    run::RunStatus status;
    status.attempt = 1;
    status.failure = run::RunFailure{1, 9, {}, "one\ntwo"};
    const std::string text = failureText(run::RunFolder("/runs/a"), status);
    EXPECT_THAT(text, HasSubstr("The run a failed: rank 1 was killed by signal 9 (SIGKILL).\n    one\n    two"));
    EXPECT_THAT(text, HasSubstr("no memory left"));
    EXPECT_THAT(text, HasSubstr("/runs/a/attempt-1/logs/rank-1.log"));
    EXPECT_EQ(failureText(run::RunFolder("/runs/a"), {}), "");
}

TEST(RunTable, alignsColumnsOfAnyScript)
{
    run::RunSummary first{run::RunFolder("/runs/ü語"), {}, halfway(), {}};
    run::RunSummary second{run::RunFolder("/runs/long name"), {}, {}, "broken"};
    EXPECT_EQ(runTable({first, second}), "run        state         step    loss   tok/s      peak\n"
                                         "ü語         running     50/100  2.3457  18.2 k  1.21 GiB\n"
                                         "long name  unreadable\n");
}

TEST(RunTable, cutsALongName)
{
    const run::RunSummary summary{run::RunFolder("/runs/" + std::string(240, 'a')), {}, halfway(), {}};
    const std::string table = runTable({summary});
    EXPECT_THAT(table, HasSubstr(std::string(47, 'a') + "…  running"));
    EXPECT_THAT(table, testing::Not(HasSubstr(std::string(48, 'a'))));
}

TEST(CutToWidth, countsCodePoints)
{
    EXPECT_EQ(cutToWidth("äöü", 2), "äö");
    EXPECT_EQ(cutToWidth("abc", 9), "abc");
    EXPECT_EQ(cutToWidth("abc", 0), "");
}

TEST(Describe, saysThatAPartOfTheRecordingIsMissing)
{
    run::RunSummary summary{run::RunFolder("/runs/a"), {}, halfway(), {}};
    EXPECT_THAT(describe(summary), testing::Not(HasSubstr("recording")));
    summary.status.recordingProblem = "Rank 1: the disk is full";
    EXPECT_THAT(describe(summary), HasSubstr("recording   Rank 1: the disk is full"));
}
