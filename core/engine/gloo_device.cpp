// SPDX-License-Identifier: Apache-2.0
#include "core/engine/gloo_device.h"

#include <sched.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace shardscope::engine::gloo {

namespace {

/// What the calling thread starts meanwhile runs under SCHED_BATCH, unless the user chose another policy than the usual
/// one. Where a sandbox forbids it all runs as it would have, only slower.
class StartsBatchThreads
{
public:
    StartsBatchThreads()
        : m_changed(::sched_getscheduler(0) == SCHED_OTHER && ::sched_setscheduler(0, SCHED_BATCH, &m_parameters) == 0)
    {
    }
    ~StartsBatchThreads()
    {
        if (m_changed)
            ::sched_setscheduler(0, SCHED_OTHER, &m_parameters);
    }
    StartsBatchThreads(const StartsBatchThreads &) = delete;
    StartsBatchThreads &operator=(const StartsBatchThreads &) = delete;

private:
    sched_param m_parameters = {}; ///< both policies have the priority 0; niceness stays
    bool m_changed;
};

} // namespace

std::shared_ptr<::gloo::transport::Device> loopbackDevice()
{
    const StartsBatchThreads batch; // threads inherit it
    return c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
}

} // namespace shardscope::engine::gloo
