// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/support/temporary_folder.h"

namespace shardscope::testing {

using test::TemporaryFolder;

} // namespace shardscope::testing
