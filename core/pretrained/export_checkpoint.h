// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/files/safetensors.h"

#include <filesystem>
#include <functional>
#include <optional>

namespace shardscope::pretrained {

enum class ExportFormat {
    HuggingFace, ///< the whole model, adapters merged into it: what transformers opens
    Adapter      ///< a run's LoRA adapters alone: what peft opens
};

struct ExportOptions
{
    ExportFormat format = ExportFormat::HuggingFace;
    /// Of the stored weights: F32 or BF16; nothing: of a model BF16 where the run computed in it, else F32.
    std::optional<files::TensorType> type;
    /// Told after each parameter; false breaks off. May be empty.
    std::function<bool(int64_t doneBytes, int64_t totalBytes)> progress;
};

/// What is exported becomes a new folder, with the folders above it that are not there yet. Says what stands in the
/// way.
Result<> checkExportTarget(const std::filesystem::path &target);

/// Says why a checkpoint can't be exported so, whatever its weights: its model's folder is gone or another one by now,
/// the run has no adapters to write, or trained more than them.
Result<> checkExportFormat(const std::filesystem::path &checkpoint, ExportFormat format);

/// Writes the weights of a checkpoint (in either format, of any number of ranks) for other programs, piece by piece:
/// memory for one, and for one adapter. The folder must not exist; it appears when it is whole. A message, and nothing
/// left behind, not even a folder above it that was made for it, where the checkpoint is damaged or has no adapters to
/// write, its model's folder is gone or the disk is full.
Result<> exportCheckpoint(const std::filesystem::path &checkpoint, const std::filesystem::path &target,
                          const ExportOptions &options);

} // namespace shardscope::pretrained
