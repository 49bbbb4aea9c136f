// SPDX-License-Identifier: Apache-2.0
// What a run is asked to do: one value for every key of docs/contract.md that works in this version. The registry
// (registry.h) binds each field to its path, unit, range and help.
#pragma once

#include "core/base/names.h"

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::config {

struct RunConfiguration
{
    struct
    {
        std::string name;      ///< "" : made from model and time
        std::string directory; ///< runs directory; "" : the default
    } run;
    struct
    {
        std::string preset = "15m";
        bool tieEmbeddings = false;
    } model;
    struct
    {
        std::string path;         ///< "" : the default corpus of this machine
        double validation = 0.01; ///< held-out share of the tokens
    } data;
    struct
    {
        int64_t steps = 200;
        /// Sequences a step = ranks × microBatch × accumulation. 0: derived from the others (checkRun() does).
        int64_t globalBatch = 0;
        int64_t microBatch = 0;   ///< sequences a rank and micro-batch; 0: derived, 4 where nothing says more
        int64_t accumulation = 0; ///< micro-batches a step; 0: derived, 1 where nothing says more
        int64_t sequenceLength = 256;
        int64_t seed = 0;
        bool deterministic = false;
        int64_t validateEvery = 0; ///< steps; 0: only at the end
    } train;
    struct
    {
        OptimizerKind kind = OptimizerKind::AdamW;
        double learningRate = 1e-3;
        double minLearningRate = -1; ///< at the end of the cosine; -1: a tenth of learningRate (checkRun() sets it)
        int64_t warmupSteps = 20;
        std::vector<double> betas = {0.9, 0.95};
        double eps = 1e-8;
        double momentum = 0.0;
        double weightDecay = 0.1;
        std::vector<std::string> noDecay = {"norm"}; ///< kinds or globs of parameters without weight decay
        double clipNorm = 1.0;                       ///< 0: no clipping
    } optimizer;
    struct
    {
        Precision compute = Precision::Fp32;
    } precision;
    struct
    {
        int64_t ranks = 1;
        std::string device = "auto";  ///< auto, cuda, cpu
        std::vector<int64_t> devices; ///< ordinals; empty: the first ones
        bool shareDevice = false;
        Strategy strategy = Strategy::Full;
        bool prefetch = true; ///< gathers ahead in backward (key: off | pre)
        bool forwardPrefetch = true;
    } parallel;
    struct
    {
        int64_t every = 0; ///< steps; 0: only when asked or interrupted
        int64_t keep = 2;
    } checkpoint;
    struct
    {
        RecordLevel level = RecordLevel::Light;
        int64_t keepSteps = 200;
        int64_t keepFirst = 10;
        double maxGib = 4;
    } record;
};

} // namespace shardscope::config
