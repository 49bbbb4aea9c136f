// SPDX-License-Identifier: Apache-2.0
#include "app/cli/command_line.h"

int main(int argc, char **argv)
{
    return shardscope::cli::main(argc, argv);
}
