// SPDX-License-Identifier: Apache-2.0
#include "core/engine/gloo_device.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <sched.h>
#include <set>
#include <string>

namespace shardscope::engine {

/// The scheduling policies of this process' threads, by thread.
static std::map<int, int> policies()
{
    std::map<int, int> all;
    for (const auto &entry : std::filesystem::directory_iterator("/proc/self/task")) {
        const int thread = std::stoi(entry.path().filename().string());
        all[thread] = ::sched_getscheduler(thread);
    }
    return all;
}

TEST(GlooDevice, itsThreadTakesNoOnesPlaceAndTheCallersPolicyStays)
{
    const int own = ::sched_getscheduler(0);
    const std::map<int, int> before = policies();
    const auto device = gloo::loopbackDevice();
    ASSERT_TRUE(device);
    std::multiset<int> ofNewThreads;
    for (const auto &[thread, policy] : policies()) {
        if (!before.contains(thread))
            ofNewThreads.insert(policy);
    }
    // Who runs the test under a policy of theirs is left it.
    EXPECT_EQ(ofNewThreads, std::multiset<int>{own == SCHED_OTHER ? SCHED_BATCH : own});
    EXPECT_EQ(::sched_getscheduler(0), own);
}

} // namespace shardscope::engine
