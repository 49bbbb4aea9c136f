// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/config/check.h"

#include <string_view>
#include <vector>

namespace shardscope::shapes {

/// What core/config's checks must know of each preset, and of the Hugging Face folder that model.path names (reads its
/// config.json) where it does.
std::vector<config::KnownModel> knownModels(std::string_view modelPath = {});

} // namespace shardscope::shapes
