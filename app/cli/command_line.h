// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace shardscope::cli {

/// Reads the command line and carries it out; returns the exit code.
int main(int argc, char **argv);

/// The last barrier: an exception that a verb lets through is told, and is exit code 1, instead of abort().
int guarded(const std::string &verb, const std::function<int()> &work);

} // namespace shardscope::cli
