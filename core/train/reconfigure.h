// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "core/config/run_configuration.h"
#include "core/control/rank_messages.h"
#include "core/engine/engine.h"
#include "core/observe/observer.h"

#include <cstdint>

namespace shardscope::train {

/// Takes up a change of the configuration between two steps, on all ranks alike: the engine's plan in place, the
/// recording with what changed and an event that says from what to what. Returns the configuration in force from
/// `firstStep` on. An error is a change that does not fit this run, which a supervisor has refused before.
Result<config::RunConfiguration> reconfigure(const control::ConfigurationChange &change, int64_t firstStep,
                                             engine::Engine &engine, observe::Observer &observer);

} // namespace shardscope::train
