// SPDX-License-Identifier: Apache-2.0
// The model that a checkpoint is of: its numbers in the manifest, and the way back from there.
#pragma once

#include "core/config/run_configuration.h"
#include "core/files/manifest.h"
#include "core/shapes/model_shape.h"

#include <filesystem>

namespace shardscope::pretrained {

/// All numbers that make a model of its tensors: two models whose tensors have the same shapes may differ in these. The
/// vocabulary's and the layers' numbers are in the tensors too, but say it in fewer words.
/// Adapters count in: another alpha would make another model of them.
files::ShapeNumbers shapeNumbers(const shapes::ModelShape &shape, const config::RunConfiguration &configuration);

/// What a job expects of a checkpoint to go on from, as far as its configuration and its model's shape say it: neither
/// the data's fingerprint nor tensors.
files::Expectation expectationOf(const shapes::ModelShape &shape, const config::RunConfiguration &configuration);

struct CheckpointModel
{
    config::RunConfiguration configuration; ///< that was in force
    shapes::ModelShape shape;
};

/// Reads model.path's config.json where the run had one; of its weights nothing is needed. A message where that is gone
/// or another model's by now. `checkpoint` names the folder in messages.
Result<CheckpointModel> modelOf(const files::Manifest &manifest, const std::filesystem::path &checkpoint);

} // namespace shardscope::pretrained
