// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace shardscope::cli {

/// Reads the command line and carries it out; returns the exit code.
int main(int argc, char **argv);

} // namespace shardscope::cli
