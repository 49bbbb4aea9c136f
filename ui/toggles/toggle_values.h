// SPDX-License-Identifier: GPL-3.0-or-later
// What live keys are for the whole model or for some of its units, and the request that changes them.
#pragma once

#include "core/config/live_change.h"
#include "core/config/registry.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::ui {

/// Units by their names in a recording ("block.3"); empty: the whole model.
using Units = std::vector<std::string>;

/// Live keys that can be set for this: all, or those that a rule may set for each of the units.
std::vector<const config::Key *> liveKeysFor(const Units &units);

/// The value of each such key in the texts of setKey(); nothing where the units differ.
std::map<std::string, std::optional<std::string>> liveValues(const config::RunConfiguration &configuration,
                                                             const Units &units);

/// Patterns over parameter names that match these units and nothing else; all blocks together are one pattern.
std::vector<std::string> patternsOf(const Units &units, const Units &all);

/// What `set` is to be asked for: by key path the new texts. `all` are the model's units.
config::LiveRequest requestFor(const std::map<std::string, std::string> &texts, const Units &units, const Units &all);

} // namespace shardscope::ui
