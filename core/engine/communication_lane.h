// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/engine/communicator.h"

#include <functional>

namespace shardscope::engine {

struct Pending::State
{
    virtual ~State() = default;
    virtual void wait() = 0;
};

/// What is done when both are; waiting for it waits for both, and throws the first one's exception before the second's.
/// Its number is the second's.
Pending both(Pending first, Pending second);

/// A queue beside the computation: work runs in the order of enqueue(), after what the caller's stream had been given
/// before. On CUDA the work is called at once, with a high-priority stream current; on the CPU a thread runs it.
class CommunicationLane
{
public:
    static std::unique_ptr<CommunicationLane> create(at::Device device);
    /// A thread for what the host does beside the computation, whatever the device. At most 15 letters.
    static std::unique_ptr<CommunicationLane> createThread(const char *name);
    virtual ~CommunicationLane() = default;
    /// What the work holds is let go before the Pending is done.
    virtual Pending enqueue(std::function<void()> work) = 0;
};

} // namespace shardscope::engine
