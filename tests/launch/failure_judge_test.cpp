// SPDX-License-Identifier: Apache-2.0
#include "core/launch/failure_judge.h"

#include <csignal>
#include <gtest/gtest.h>

using namespace shardscope;
using shardscope::control::FailureMessage;
using shardscope::launch::FailureJudge;

static constexpr int64_t kSecondNs = 1'000'000'000;

TEST(FailureJudge, theEarliestReasonCounts)
{
    FailureJudge judge;
    EXPECT_FALSE(judge.any());
    judge.said(1, FailureMessage{"second", 1, false, 20});
    judge.said(0, FailureMessage{"first", 3, false, 10});
    judge.ended(1, 1, {}, 2 * kSecondNs);
    judge.ended(0, 3, {}, 2 * kSecondNs);
    EXPECT_EQ(judge.verdict().rank, 0);
    EXPECT_EQ(judge.verdict().text, "first");
    EXPECT_EQ(judge.verdict().exitCode, 3);
}

TEST(FailureJudge, whatFailedInACollectiveFailedBecauseOfAnother)
{
    FailureJudge judge;
    judge.said(0, FailureMessage{"Connection reset by peer", 1, true, 9 * kSecondNs});
    judge.ended(0, 1, {}, 10 * kSecondNs);
    judge.ended(1, {}, 9, 10 * kSecondNs + 1000);
    EXPECT_EQ(judge.verdict().rank, 1);
    EXPECT_EQ(judge.verdict().signal, 9);
    EXPECT_TRUE(judge.verdict().text.empty());
    EXPECT_EQ(judge.of(0).text, "Connection reset by peer");
}

TEST(FailureJudge, anAbortIsTheReasonOnlyWhereThereIsNoOther)
{
    FailureJudge judge;
    judge.ended(1, {}, SIGABRT, kSecondNs);
    EXPECT_EQ(judge.verdict().signal, SIGABRT);
    judge.said(2, FailureMessage{"Connection reset by peer", 1, true, kSecondNs});
    EXPECT_EQ(judge.verdict().rank, 1) << "a lost connection is no reason for it";
    judge.said(0, FailureMessage{"the disk is full", 1, false, 2 * kSecondNs});
    EXPECT_EQ(judge.verdict().rank, 0);
}

TEST(FailureJudge, aDeathIsSeenLateAndStillFirst)
{
    FailureJudge judge;
    judge.said(0, FailureMessage{"peer is gone", 1, false, 10 * kSecondNs});
    judge.ended(1, {}, 11, 10 * kSecondNs + kSecondNs / 10);
    EXPECT_EQ(judge.verdict().rank, 1);
}

TEST(FailureJudge, aCollectiveIsTheReasonWhereThereIsNoOther)
{
    FailureJudge judge;
    judge.said(1, FailureMessage{"timed out", 1, true, 5});
    judge.ended(1, 1, {}, kSecondNs);
    EXPECT_EQ(judge.verdict().text, "timed out");
    EXPECT_EQ(judge.of(0).rank, 0);
}
