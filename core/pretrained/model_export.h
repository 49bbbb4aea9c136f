// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/pretrained/checkpoint_model.h"
#include "core/pretrained/checkpoint_weights.h"
#include "core/pretrained/export_checkpoint.h"

namespace shardscope::pretrained {

/// The whole model into a new folder in Hugging Face's layout; a weight with an adapter as W + s·B·A, summed in fp32.
Result<> exportModel(CheckpointWeights &weights, const CheckpointModel &model, const std::filesystem::path &folder,
                     const ExportOptions &options);

} // namespace shardscope::pretrained
