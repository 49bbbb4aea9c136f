// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace shardscope::cli {

enum class Verdict { Good, Note, Bad };

/// One thing that `doctor` looked at.
struct Finding
{
    Verdict verdict = Verdict::Good;
    std::string subject; ///< "driver", "worker", …
    std::string text;
    std::string remedy; ///< empty where nothing is to be done
};

/// Everything that a run needs from this machine. Bad is what makes runs impossible; a machine whose GPU can't be
/// used is a Note: the processor can.
std::vector<Finding> examineMachine();

} // namespace shardscope::cli
