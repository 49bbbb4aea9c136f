// SPDX-License-Identifier: Apache-2.0
#include "core/base/names.h"

#include <gtest/gtest.h>

using namespace shardscope;

template <typename E>
static void expectRoundTrip(E last)
{
    EXPECT_EQ(std::size(Names<E>::texts), static_cast<size_t>(last) + 1);
    for (std::string_view text : Names<E>::texts)
        EXPECT_EQ(toText(*fromText<E>(text)), text);
    EXPECT_EQ(fromText<E>("no such value"), std::nullopt);
}

TEST(Names, areAsManyAsTheValuesAndReadBack)
{
    expectRoundTrip(Strategy::Hybrid);
    expectRoundTrip(ParameterKind::Bias);
    expectRoundTrip(Prefetch::Post);
    expectRoundTrip(ReduceEvery::Step);
    expectRoundTrip(Recompute::Selective);
    expectRoundTrip(OffloadPlace::Nvme);
    expectRoundTrip(Precision::Fp16);
    expectRoundTrip(OnNan::Off);
    expectRoundTrip(MemoryCategory::Other);
    expectRoundTrip(SpanCategory::Idle);
    expectRoundTrip(Phase::Validate);
    expectRoundTrip(Operation::Recv);
    expectRoundTrip(UnitKind::Other);
    expectRoundTrip(LaneKind::Stream);
    expectRoundTrip(EventKind::Death);
    expectRoundTrip(RunState::Lost);
    expectRoundTrip(StepState::Skipped);
}
