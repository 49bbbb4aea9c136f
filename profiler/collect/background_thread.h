// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace shardscope::collect {

/// A thread that must not disturb the training: it gives way to it (nice 5, its own thread only) and takes no signals,
/// which are the main thread's. The name (at most 15 characters) is what `top -H` shows.
std::thread startBackgroundThread(std::string name, std::function<void()> run);

} // namespace shardscope::collect
