// SPDX-License-Identifier: Apache-2.0
// LoRA adapters as peft keeps them: adapter_config.json and adapter_model.safetensors.
#pragma once

#include "core/pretrained/checkpoint_model.h"
#include "core/pretrained/checkpoint_weights.h"
#include "core/pretrained/export_checkpoint.h"

namespace shardscope::pretrained {

/// A message where the run has no adapters, or trained more than them.
Result<> checkAdapters(const CheckpointModel &model);

/// The adapters into a new folder, in fp32 where options.type says nothing else. A message as
/// checkAdapters() has it.
Result<> exportAdapter(CheckpointWeights &weights, const CheckpointModel &model, const std::filesystem::path &folder,
                       const ExportOptions &options);

} // namespace shardscope::pretrained
