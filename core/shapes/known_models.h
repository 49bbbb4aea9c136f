// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/config/check.h"

#include <vector>

namespace shardscope::shapes {

/// What core/config's checks must know of each preset.
std::vector<config::KnownModel> knownModels();

} // namespace shardscope::shapes
