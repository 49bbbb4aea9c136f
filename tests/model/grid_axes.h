// SPDX-License-Identifier: Apache-2.0
// The settings that a running job may change, as axes of a grid: how parameters are sharded, what is recomputed, where
// activations and states lie, when gradients are reduced, whether they are clipped.
#pragma once

#include "core/config/run_configuration.h"
#include "tests/model/covering_rows.h"

#include <functional>
#include <string>
#include <vector>

namespace shardscope::test {

struct GridOption
{
    std::string name;
    std::function<void(config::RunConfiguration &)> apply;
    int ranks = 0;       ///< makes sense at this world size alone; 0: at each
    bool onCuda = false; ///< on a CUDA device alone
};

struct GridAxis
{
    std::string name;
    std::vector<GridOption> options;
};

/// Of the last one each row has its values in turn.
const std::vector<GridAxis> &gridAxes();
/// Rules that make the buckets which the options set apart: a run of the grid starts with them.
std::vector<config::UnitRule> gridRules();
/// `base` with the options of a row.
config::RunConfiguration withOptions(config::RunConfiguration base, const Row &row);
/// "full, block, …".
std::string textOf(const Row &row);
/// The rows that make sense at a world size on a kind of device.
CoveringRows gridRows(int worldSize, DeviceKind device = DeviceKind::Cpu);

} // namespace shardscope::test
