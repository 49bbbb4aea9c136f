// SPDX-License-Identifier: Apache-2.0
// How long and how much at once: a reader must never hold up the writer of a live recording for longer than its
// patience.
#pragma once

#include <cstdint>

namespace shardscope::store {

inline constexpr int kReaderBusyTimeoutMs = 5000;
inline constexpr int kWriterBusyTimeoutMs = 1000;
inline constexpr int64_t kChunkRows = 50'000; ///< a read transaction: 20 to 60 ms
inline constexpr int kCancelEvery = 20'000;   ///< SQLite's virtual instructions between two looks at the cancel token

} // namespace shardscope::store
