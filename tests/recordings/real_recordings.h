// SPDX-License-Identifier: Apache-2.0
// Runs on real GPUs as our own program recorded them (README.md beside this file). Tests read them with plain SQL too
// (tests/support/plain_sql.h). Library target: shardscope_test_real_recordings.
#pragma once

#include "tests/support/plain_sql.h"

#include <filesystem>
#include <string>

namespace shardscope::test {

/// Copies the run folder of "two_gpus" or "eight_ranks" to `run`, whose parent exists: whatever opens it may write
/// beside it. Throws std::runtime_error where it was not unpacked: SHARDSCOPE_BIN then does not name a built tree's bin
/// folder.
void copyRecording(const std::string &name, const std::filesystem::path &run);

} // namespace shardscope::test
