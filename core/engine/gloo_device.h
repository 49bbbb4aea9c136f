// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace gloo::transport {
class Device;
}

namespace shardscope::engine::gloo {

/// Gloo's end of the loopback interface, with the thread that moves its messages. Throws where it can't be opened.
///
/// That thread never waits for a connection's lock: it asks epoll again, without end, until whoever holds the lock has
/// let it go. A rank that sends holds it in the moment its message wakes the receiver's thread, and on cores that are
/// all busy the woken one took the sender's place at once: the sender's own thread then spun out its slice, up to 2 ms
/// a message. So the thread gets a policy (SCHED_BATCH) under which waking takes no one's place; on an idle core it
/// starts as soon as before. 4 ranks on 2 cores took 2 to 5 million calls of epoll for 28 steps of a small model.
std::shared_ptr<::gloo::transport::Device> loopbackDevice();

} // namespace shardscope::engine::gloo
