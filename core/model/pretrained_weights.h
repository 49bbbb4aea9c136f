// SPDX-License-Identifier: Apache-2.0
// Weights from and to Hugging Face folders, parameter by parameter: no more than one is whole in host memory.
#pragma once

#include "core/engine/engine.h"
#include "core/pretrained/folder_writer.h"
#include "core/pretrained/weight_folder.h"

namespace shardscope::model {

/// Copies every parameter of the folder into an engine of its shape; each rank reads it and keeps its part. A message
/// where a read fails: the weights are then to be given up.
Result<> loadWeights(engine::Engine &engine, const pretrained::WeightFolder &folder);

/// Gathers every parameter and writes it with `writer`, which is one rank's (null on the others); all ranks call it.
/// A message, on that rank alone, where it could not be written; all parameters are gathered nevertheless, so that no
/// rank waits. finish() is left to the caller.
Result<> writeWeights(engine::Engine &engine, const shapes::ModelShape &shape, pretrained::FolderWriter *writer);

} // namespace shardscope::model
