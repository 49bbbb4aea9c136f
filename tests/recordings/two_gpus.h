// SPDX-License-Identifier: Apache-2.0
// A run of two ranks on two GPUs as our own program recorded it (README.md beside this file). Tests read it with plain
// SQL too (tests/support/plain_sql.h). Library target: shardscope_test_two_gpus.
#pragma once

#include "tests/support/plain_sql.h"

#include <filesystem>

namespace shardscope::test {

/// Copies the run folder to `run`, whose parent exists: whatever opens it may write beside it. Throws
/// std::runtime_error where it was not unpacked: SHARDSCOPE_BIN then does not name a built tree's bin folder.
void copyTwoGpusRecording(const std::filesystem::path &run);

} // namespace shardscope::test
