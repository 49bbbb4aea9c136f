// SPDX-License-Identifier: Apache-2.0
// What a run is asked to do: one value for every key of docs/contract.md that works in this version. The registry
// (registry.h) binds each field to its path, unit, range and help.
#pragma once

#include "core/base/names.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::config {

/// One [[unit]]: which parameters it is about, and what it sets for them in place of the run's own values.
struct UnitRule
{
    /// A key of the registry by its path ("parallel.strategy"), and its value as setKey() reads it.
    struct Setting
    {
        std::string key;
        std::string value;
        bool operator==(const Setting &) const = default;
    };
    std::string match = "*";           ///< glob over parameter names
    std::optional<ParameterKind> kind; ///< of this kind only
    int64_t minParameters = 0;         ///< of at least so many elements only
    bool wrap = false;                 ///< what matches is gathered by itself, only while it is used
    std::optional<bool> ignore;        ///< not sharded, as under `none`
    std::optional<bool> frozen;        ///< not trained
    std::vector<Setting> settings;
    bool operator==(const UnitRule &) const = default;
};

struct RunConfiguration
{
    struct
    {
        std::string name;          ///< "" : made from model and time
        std::string directory;     ///< runs directory; "" : the default
        int64_t hangSeconds = 600; ///< a run in which nothing moves for so long is ended; 0: never
    } run;
    struct
    {
        std::string preset = "15m"; ///< "" where path is used (checkRun() sets it)
        std::string path;           ///< a Hugging Face folder in the preset's place; "": none
        bool tieEmbeddings = false;
    } model;
    struct
    {
        std::string path;               ///< "" : the default corpus of this machine
        double validation = 0.01;       ///< held-out share of the tokens
        std::string tokenizer;          ///< "" : the model folder's own, else bytes; "bytes"; a file or folder
        std::string separator = "auto"; ///< between two texts: "auto", "none", a token's text or its id
        int64_t tokenBytes = 0;         ///< of a .bin: 2 or 4; 0: by its header, else by the vocabulary
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
        OnNan onNan = OnNan::Stop;
        int64_t skipLimit = 10; ///< steps in a row that OnNan::Skip leaves out at most; 0: any number
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
        std::vector<std::string> noDecay = {"norm", "bias"}; ///< kinds or globs of parameters without weight decay
        double clipNorm = 1.0;                               ///< 0: no clipping
    } optimizer;
    struct
    {
        Precision compute = Precision::Fp32;
        Precision reduce = Precision::Fp32;  ///< what gradients travel in; fp32 or bf16
        Precision moments = Precision::Fp32; ///< of the optimizer; fp32 or bf16
        struct
        {
            double initial = 65536;
            double growthFactor = 2;
            int64_t growthInterval = 2000; ///< steps
            double backoff = 0.5;
        } scaler; ///< the loss scale of fp16, as torch.amp.GradScaler's
    } precision;
    struct
    {
        int64_t ranks = 1;
        std::string device = "auto";  ///< auto, cuda, cpu
        std::vector<int64_t> devices; ///< ordinals; empty: the first ones
        bool shareDevice = false;
        Strategy strategy = Strategy::Full;
        int64_t shardGroup = 0; ///< hybrid: ranks that share one copy; 0: derived (checkRun() does)
        int64_t reshardGroup =
            0; ///< full, hybrid: ranks that share the parameters between forward and backward; 0: as many
        Prefetch prefetch = Prefetch::Pre; ///< gathers ahead in backward
        int64_t prefetchDepth = 1;         ///< units gathered ahead
        bool forwardPrefetch = true;
        int64_t gatherLimitBytes = 0; ///< of what is gathered ahead; 0: no limit
        ReduceEvery reduceEvery = ReduceEvery::MicroBatch;
    } parallel;
    struct
    {
        Recompute recompute = Recompute::Off;
        int64_t recomputeEvery = 1; ///< every k-th block
        bool activationOffload = false;
        int64_t capBytes = 0; ///< of the allocator; 0: none
    } memory;
    struct
    {
        OffloadPlace parameters = OffloadPlace::None;
        OffloadPlace gradients = OffloadPlace::None;
        OffloadPlace optimizer = OffloadPlace::None;
        std::string path; ///< folder for nvme; "": beside the run
    } offload;
    struct
    {
        int64_t rank = 0; ///< of the adapters; 0: none, the model itself is trained
        double alpha = 0; ///< adapters count alpha ÷ rank; 0: as rank (checkRun() sets it)
        std::vector<std::string> targets = {"block.*"}; ///< patterns of the linear weights that get one
    } lora;
    struct
    {
        int64_t every = 0; ///< steps; 0: only when asked, interrupted or done
        int64_t keep = 2;
        CheckpointFormat format = CheckpointFormat::Sharded;
        bool atEnd = true;         ///< of the last step
        bool asynchronous = false; ///< written behind the training
    } checkpoint;
    struct
    {
        RecordLevel level = RecordLevel::Light;
        int64_t keepSteps = 200;
        int64_t keepFirst = 10;
        double maxGib = 4;
    } record;
    std::vector<UnitRule> units; ///< [[unit]], in order: the last match wins, key by key
};

} // namespace shardscope::config
