// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace shardscope::cli {

/// docs/contract.md, "Command line".
enum ExitCode {
    kDone = 0,
    kJobFailed = 1,
    kWrongInput = 2, ///< nothing was made
    kInterrupted = 130
};

} // namespace shardscope::cli
