// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/worker/arguments.h"
#include "app/worker/rank_environment.h"
#include "core/base/result.h"
#include "core/config/check.h"
#include "core/data/dataset.h"
#include "core/pretrained/open_model.h"
#include "core/shapes/model_shape.h"

#include <c10/core/Device.h>
#include <optional>
#include <string>

namespace shardscope::worker {

/// What is decided before anything is made.
struct Setup
{
    config::ResolvedRun run;
    shapes::ModelShape shape;
    double flopsPerToken = 0;                        ///< of a trained token, forward and backward
    std::optional<pretrained::WeightFolder> weights; ///< that a new run begins with; else fresh ones
    std::vector<std::string> warnings;               ///< of the model's folder, for the log
    std::optional<data::Dataset> dataset;
    c10::Device device = c10::kCPU;
    std::string deviceName; ///< "cpu", "cuda:0 NVIDIA H200"
    int threads = 1;        ///< of LibTorch's CPU operators
};

/// Reads configuration and data and chooses the device. Touches neither LibTorch's state nor the device.
Result<Setup> readSetup(const Arguments &arguments, const RankEnvironment &environment);

/// Device, threads, determinism and precision of LibTorch, for this process.
void applyToLibTorch(const Setup &setup);

} // namespace shardscope::worker
