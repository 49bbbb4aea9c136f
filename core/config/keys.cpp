// SPDX-License-Identifier: Apache-2.0
// The table of keys. A key is here when it works, not before.
#include "core/config/registry.h"

namespace shardscope::config {

static constexpr double kMany = 1e9; ///< larger counts are slips of the keyboard

#define FIELD(member) [](RunConfiguration &configuration) -> Field { return &configuration.member; }

static std::vector<Key> runKeys()
{
    return {
        {.path = "run.name",
         .label = "Name",
         .help = "Name of the run and of its folder; made from the model and the time where it is left empty.",
         .field = FIELD(run.name)},
        {.path = "run.directory",
         .label = "Runs directory",
         .help = "Folder in which the run's folder is made; empty: the default runs directory.",
         .field = FIELD(run.directory)},
        {.path = "run.hang_seconds",
         .label = "Hang after",
         .unit = "seconds",
         .help = "A run fails in which for so long no rank has done a step, or begun or ended a collective; 0: never.",
         .range = {.minimum = 0, .maximum = 1e6},
         .field = FIELD(run.hangSeconds)},
        {.path = "model.preset",
         .label = "Model",
         .help = "A Llama-shaped decoder by its size: tiny, 15m, 124m, 350m, 1b3, 2b7, 6b7.",
         .field = FIELD(model.preset)},
        {.path = "model.path",
         .label = "Model folder",
         .help =
             "Instead of a preset: a folder in Hugging Face's layout, with config.json and safetensors, of the Llama, "
             "Mistral, Qwen2 or Qwen3 family. With config.json alone the model is trained from scratch.",
         .field = FIELD(model.path)},
        {.path = "model.tie_embeddings",
         .label = "Tie embeddings",
         .help = "The head uses the embedding's weight instead of one of its own. A folder says so itself; true ties "
                 "one that doesn't.",
         .field = FIELD(model.tieEmbeddings)},
        {.path = "data.path",
         .label = "Data",
         .help =
             "A text file, a folder of text files or a .bin file of tokens; empty: licence texts and scripts found on "
             "this machine.",
         .field = FIELD(data.path)},
        {.path = "data.validation",
         .label = "Held-out share",
         .help = "Share of the tokens, at their end, that is kept for the validation loss.",
         .range = {.minimum = 0, .maximum = 0.5},
         .field = FIELD(data.validation)},
        {.path = "data.tokenizer",
         .label = "Tokenizer",
         .help = "bytes, a SentencePiece model (.model), a tokenizer.json, or a folder with one of them; empty: the "
                 "model folder's own, else bytes.",
         .field = FIELD(data.tokenizer)},
        {.path = "data.separator",
         .label = "Separator",
         .help = "Token between two texts: its text or id, none, or auto (the tokenizer's end of text; 0 for bytes).",
         .field = FIELD(data.separator)},
        {.path = "data.token_bytes",
         .label = "Bytes of a token",
         .unit = "bytes",
         .help = "Of a .bin file: 2 (uint16) or 4 (uint32); auto: what its header says, else 4 where the vocabulary "
                 "has more than 65536 tokens.",
         .range = {.minimum = 2, .maximum = 4},
         .automatic = 0,
         .field = FIELD(data.tokenBytes)},
    };
}

static std::vector<Key> trainKeys()
{
    return {
        {.path = "train.steps",
         .label = "Steps",
         .unit = "steps",
         .help = "Optimizer steps of the whole run.",
         .range = {.minimum = 1, .maximum = kMany},
         .field = FIELD(train.steps)},
        {.path = "train.global_batch",
         .label = "Global batch",
         .unit = "sequences",
         .help = "Sequences of a step on all ranks together: ranks × micro_batch × accumulation.",
         .range = {.minimum = 1, .maximum = kMany},
         .automatic = 0,
         .field = FIELD(train.globalBatch)},
        {.path = "train.micro_batch",
         .label = "Micro-batch",
         .unit = "sequences",
         .help = "Sequences that a rank computes at once.",
         .range = {.minimum = 1, .maximum = 1e6},
         .automatic = 0,
         .field = FIELD(train.microBatch)},
        {.path = "train.accumulation",
         .label = "Accumulation",
         .unit = "micro-batches",
         .help = "Micro-batches of a step whose gradients are summed before the optimizer runs.",
         .range = {.minimum = 1, .maximum = 1e6},
         .automatic = 0,
         .field = FIELD(train.accumulation)},
        {.path = "train.sequence_length",
         .label = "Sequence length",
         .unit = "tokens",
         .help = "Tokens of a sequence.",
         .range = {.minimum = 1, .maximum = kMany},
         .field = FIELD(train.sequenceLength)},
        {.path = "train.seed",
         .label = "Seed",
         .help = "Decides the initial weights and the order of the samples.",
         .range = {.minimum = 0},
         .field = FIELD(train.seed)},
        {.path = "train.deterministic",
         .label = "Deterministic",
         .help = "Only operators that give the same bits in each run; slower on a GPU.",
         .field = FIELD(train.deterministic)},
        {.path = "train.validate_every",
         .label = "Validate every",
         .unit = "steps",
         .help = "Steps from one validation loss to the next; 0: only at the end.",
         .range = {.minimum = 0, .maximum = kMany},
         .field = FIELD(train.validateEvery)},
        {.path = "train.on_nan",
         .label = "On NaN",
         .help = "A step whose loss or gradient is NaN or infinite changes no weights, and the first operation with "
                 "such a number is named. stop: the run fails, with a checkpoint of the last good step; skip: it goes "
                 "on. off: the run fails without a checkpoint, which lets offloaded updates begin behind backward "
                 "where nothing is clipped.",
         .field = FIELD(train.onNan)},
        {.path = "train.skip_limit",
         .label = "Skip limit",
         .unit = "steps",
         .help =
             "Steps in a row that on_nan=skip leaves out at most: one more, and the run fails with a checkpoint of the "
             "last good step. 0: it goes on however many they are.",
         .range = {.minimum = 0, .maximum = kMany},
         .field = FIELD(train.skipLimit)},
    };
}

static std::vector<Key> optimizerKeys()
{
    return {
        {.path = "optimizer.kind",
         .label = "Optimizer",
         .help = "How gradients become updates.",
         .field = FIELD(optimizer.kind)},
        {.path = "optimizer.learning_rate",
         .label = "Learning rate",
         .help = "Rate at the end of the warm-up; the same for any number of ranks.",
         .range = {.minimum = 0, .maximum = 1000, .minimumExcluded = true},
         .live = true,
         .field = FIELD(optimizer.learningRate)},
        {.path = "optimizer.min_learning_rate",
         .label = "Final learning rate",
         .help = "Rate at the end of the cosine; auto: a tenth of the learning rate.",
         .range = {.minimum = 0, .maximum = 1000},
         .automatic = -1,
         .field = FIELD(optimizer.minLearningRate)},
        {.path = "optimizer.warmup_steps",
         .label = "Warm-up",
         .unit = "steps",
         .help = "Steps in which the rate climbs from 0.",
         .range = {.minimum = 0, .maximum = kMany},
         .field = FIELD(optimizer.warmupSteps)},
        {.path = "optimizer.betas",
         .label = "Betas",
         .help = "AdamW's decay of the first and of the second moment.",
         .range = {.minimum = 0, .maximum = 1, .maximumExcluded = true},
         .length = 2,
         .field = FIELD(optimizer.betas)},
        {.path = "optimizer.eps",
         .label = "Epsilon",
         .help = "What AdamW adds to the root of the second moment.",
         .range = {.minimum = 0, .maximum = 1, .minimumExcluded = true},
         .field = FIELD(optimizer.eps)},
        {.path = "optimizer.momentum",
         .label = "Momentum",
         .help = "Momentum of sgd.",
         .range = {.minimum = 0, .maximum = 1, .maximumExcluded = true},
         .field = FIELD(optimizer.momentum)},
        {.path = "optimizer.weight_decay",
         .label = "Weight decay",
         .help = "Decoupled decay of the weights, a step and unit of learning rate.",
         .range = {.minimum = 0, .maximum = 1000},
         .field = FIELD(optimizer.weightDecay)},
        {.path = "optimizer.no_decay",
         .label = "No decay for",
         .help =
             "Kinds (norm, bias, linear, embedding) or patterns (block.*.ffn.*) of parameters without weight decay.",
         .field = FIELD(optimizer.noDecay)},
        {.path = "optimizer.clip_norm",
         .label = "Clip norm",
         .help = "Gradients are scaled down to this global norm; 0: never.",
         .range = {.minimum = 0, .maximum = 1e9},
         .live = true,
         .field = FIELD(optimizer.clipNorm)},
        {.path = "precision.compute",
         .label = "Precision",
         .help = "Number format of forward and backward; masters are fp32. fp16 trains with a loss scale.",
         .field = FIELD(precision.compute)},
        {.path = "precision.reduce",
         .label = "Gradients travel in",
         .help = "Number format in which ranks send each other gradients; they are added in fp32. bf16 sends half the "
                 "bytes.",
         .choices = {"fp32", "bf16"},
         .field = FIELD(precision.reduce)},
        {.path = "precision.moments",
         .label = "Moments",
         .help =
             "Number format in which the optimizer keeps its moments; updates are computed in fp32. bf16 needs half "
             "the memory.",
         .choices = {"fp32", "bf16"},
         .field = FIELD(precision.moments)},
        {.path = "precision.scaler.initial",
         .label = "Initial loss scale",
         .help =
             "fp16: what gradients are multiplied by at first, so that small ones are not lost. A step in which one "
             "overflows is skipped and lowers the scale.",
         .range = {.minimum = 1, .maximum = 1e30},
         .field = FIELD(precision.scaler.initial)},
        {.path = "precision.scaler.growth_factor",
         .label = "Loss scale grows by",
         .help = "fp16: the loss scale is multiplied by it after precision.scaler.growth_interval steps without "
                 "overflow.",
         .range = {.minimum = 1, .maximum = 1e6, .minimumExcluded = true},
         .field = FIELD(precision.scaler.growthFactor)},
        {.path = "precision.scaler.growth_interval",
         .label = "Loss scale grows every",
         .unit = "steps",
         .help = "fp16: steps without overflow after which the loss scale grows.",
         .range = {.minimum = 1, .maximum = kMany},
         .field = FIELD(precision.scaler.growthInterval)},
        {.path = "precision.scaler.backoff",
         .label = "Loss scale falls by",
         .help = "fp16: the loss scale is multiplied by it at an overflow; it falls to 1 at most.",
         .range = {.minimum = 0, .maximum = 1, .minimumExcluded = true, .maximumExcluded = true},
         .field = FIELD(precision.scaler.backoff)},
    };
}

static std::vector<Key> parallelKeys()
{
    return {
        {.path = "parallel.ranks",
         .label = "Ranks",
         .unit = "ranks",
         .help = "Processes that share the training, one for each GPU.",
         .range = {.minimum = 1, .maximum = 1024},
         .field = FIELD(parallel.ranks)},
        {.path = "parallel.device",
         .label = "Device",
         .help = "Where the ranks compute; auto: on GPUs where there are any.",
         .choices = {"auto", "cuda", "cpu"},
         .field = FIELD(parallel.device)},
        {.path = "parallel.devices",
         .label = "GPUs",
         .help = "Numbers of the GPUs to use, as CUDA counts them; empty: the first ones.",
         .range = {.minimum = 0, .maximum = 1023},
         .field = FIELD(parallel.devices)},
        {.path = "parallel.share_device",
         .label = "Share a GPU",
         .help =
             "Lets several ranks use one GPU: right results, but no gain in speed. They talk over loopback sockets, "
             "for which NCCL_BUFFSIZE (64 MiB of host memory for each connection), NCCL_SOCKET_NTHREADS and "
             "NCCL_NSOCKS_PERTHREAD are set where you have not.",
         .field = FIELD(parallel.shareDevice)},
        {.path = "parallel.strategy",
         .label = "Strategy",
         .help = "What is sharded: full (parameters, gradients, optimizer; ZeRO-3), grad_op (gradients, optimizer; "
                 "ZeRO-2), none (DDP), hybrid (full within a shard group, replicated across groups).",
         .live = true,
         .field = FIELD(parallel.strategy)},
        {.path = "parallel.shard_group",
         .label = "Shard group",
         .unit = "ranks",
         .help = "Neighbouring ranks that share one copy under hybrid; it divides the ranks. auto: half of them.",
         .range = {.minimum = 1, .maximum = 1024},
         .automatic = 0,
         .live = true,
         .field = FIELD(parallel.shardGroup)},
        {.path = "parallel.reshard_group",
         .label = "Reshard group",
         .unit = "ranks",
         .help = "Neighbouring ranks that share the gathered parameters between forward and backward (full, hybrid): "
                 "fewer ranks gather faster and hold more. auto: the shard group.",
         .range = {.minimum = 1, .maximum = 1024},
         .automatic = 0,
         .live = true,
         .field = FIELD(parallel.reshardGroup)},
        {.path = "parallel.prefetch",
         .label = "Prefetch in backward",
         .help =
             "pre: the next unit's gather is enqueued before backward computes this one; post: after, so that fewer "
             "bytes are gathered at once; off: when it is needed.",
         .live = true,
         .field = FIELD(parallel.prefetch)},
        {.path = "parallel.prefetch_depth",
         .label = "Prefetch depth",
         .unit = "units",
         .help = "Units that are gathered ahead of the computation.",
         .range = {.minimum = 1, .maximum = 64},
         .live = true,
         .field = FIELD(parallel.prefetchDepth)},
        {.path = "parallel.forward_prefetch",
         .label = "Prefetch in forward",
         .help = "The next unit is gathered while forward still computes this one.",
         .live = true,
         .field = FIELD(parallel.forwardPrefetch)},
        {.path = "parallel.gather_limit_bytes",
         .label = "Gather limit",
         .unit = "bytes",
         .help = "Nothing is gathered ahead while more bytes than this would be gathered; 0: no limit.",
         .range = {.minimum = 0, .maximum = 1e15},
         .live = true,
         .field = FIELD(parallel.gatherLimitBytes)},
        {.path = "parallel.reduce_every",
         .label = "Reduce every",
         .help =
             "micro_batch: gradients are reduced after each micro-batch, and only their shards are kept; step: once, "
             "after the last one, which sends less and holds whole gradients (4 bytes a parameter).",
         .live = true,
         .field = FIELD(parallel.reduceEvery)},
    };
}

static std::vector<Key> memoryKeys()
{
    return {
        {.path = "memory.recompute",
         .label = "Recompute",
         .help = "What blocks compute again in backward instead of keeping it: off (little), selective (all but "
                 "attention), block (everything; they keep their input alone).",
         .live = true,
         .field = FIELD(memory.recompute)},
        {.path = "memory.recompute_every",
         .label = "Recompute every",
         .unit = "blocks",
         .help = "Recompute in one of so many blocks, counted from the first.",
         .range = {.minimum = 1, .maximum = kMany},
         .live = true,
         .field = FIELD(memory.recomputeEvery)},
        {.path = "memory.activation_offload",
         .label = "Offload activations",
         .help = "What blocks keep for backward lies in pinned host memory meanwhile; copies run beside the "
                 "computation. Needs a GPU.",
         .live = true,
         .field = FIELD(memory.activationOffload)},
        {.path = "memory.cap_bytes",
         .label = "Memory cap",
         .unit = "bytes",
         .help =
             "Most that a rank's allocator takes of its GPU; a step that needs more fails as on a smaller card. 0: no "
             "cap.",
         .range = {.minimum = 0, .maximum = 1e15},
         .field = FIELD(memory.capBytes)},
    };
}

static std::vector<Key> offloadKeys()
{
    return {
        {.path = "offload.parameters",
         .label = "Parameters lie in",
         .help = "none: the device; cpu: pinned host memory, from where each unit's are copied to the device in the "
                 "compute dtype when they are gathered; nvme: a file.",
         .live = true,
         .field = FIELD(offload.parameters)},
        {.path = "offload.gradients",
         .label = "Gradients lie in",
         .help = "none: the device; cpu: pinned host memory, to which each unit's are copied once they are reduced.",
         .choices = {"none", "cpu"},
         .live = true,
         .field = FIELD(offload.gradients)},
        {.path = "offload.optimizer",
         .label = "Optimizer states lie in",
         .help =
             "none: the device; cpu: pinned host memory; nvme: a file. Where the parameters are off the device too, "
             "the processor makes the update.",
         .live = true,
         .field = FIELD(offload.optimizer)},
        {.path = "offload.path",
         .label = "Offload folder",
         .help =
             "Where nvme makes its files, one a rank, which vanish with the run; empty: the attempt's folder. Nothing "
             "begins, or changes, that its drive has no room for.",
         .field = FIELD(offload.path)},
    };
}

static std::vector<Key> loraKeys()
{
    return {
        {.path = "lora.rank",
         .label = "Rank of LoRA",
         .help =
             "Trains low-rank adapters of this rank beside linear weights, which stay as they are, and nothing else; "
             "0: no adapters, the whole model.",
         .range = {.minimum = 0, .maximum = 65536},
         .field = FIELD(lora.rank)},
        {.path = "lora.alpha",
         .label = "Alpha of LoRA",
         .help = "Adapters are multiplied by alpha ÷ rank; auto: by 1.",
         .range = {.minimum = 0, .maximum = 1e6, .minimumExcluded = true},
         .automatic = 0,
         .field = FIELD(lora.alpha)},
        {.path = "lora.targets",
         .label = "Targets of LoRA",
         .help = "Patterns of the linear weights that get an adapter, as attention.q, block.0.ffn.*, head or Hugging "
                 "Face's q_proj; block.*: all of the blocks.",
         .field = FIELD(lora.targets)},
    };
}

static std::vector<Key> keepingKeys()
{
    return {
        {.path = "checkpoint.every",
         .label = "Checkpoint every",
         .unit = "steps",
         .help = "Steps from one checkpoint to the next; 0: only when asked for, interrupted or done.",
         .range = {.minimum = 0, .maximum = kMany},
         .live = true,
         .field = FIELD(checkpoint.every)},
        {.path = "checkpoint.keep",
         .label = "Checkpoints kept",
         .unit = "checkpoints",
         .help = "Older checkpoints are deleted once a newer one is whole.",
         .range = {.minimum = 1, .maximum = 1e6},
         .live = true,
         .field = FIELD(checkpoint.keep)},
        {.path = "checkpoint.at_end",
         .label = "Checkpoint at the end",
         .help = "A run that has done its last step leaves a checkpoint of it: to be exported, or to go on from.",
         .live = true,
         .field = FIELD(checkpoint.atEnd)},
        {.path = "checkpoint.format",
         .label = "Checkpoint format",
         .help =
             "sharded: each rank a file with what it owns; full: model.safetensors and optimizer.safetensors, which "
             "other programs open. Both go on at any number of ranks.",
         .field = FIELD(checkpoint.format)},
        {.path = "checkpoint.asynchronous",
         .label = "Write behind the training",
         .help = "The state is copied to host memory (12 bytes a parameter ÷ ranks with AdamW) and written while the "
                 "training goes on.",
         .field = FIELD(checkpoint.asynchronous)},
        {.path = "record.level",
         .label = "Recording",
         .help = "What is recorded: off, light (spans, collectives, sums), full (CUDA's calls and "
                 "allocations too; calls that only ask, such as cudaGetDevice, are left out).",
         .live = true,
         .field = FIELD(record.level)},
        {.path = "record.keep_steps",
         .label = "Keep spans of",
         .unit = "steps",
         .help = "Newest steps whose spans are kept; older steps keep their sums.",
         .range = {.minimum = 1, .maximum = kMany},
         .field = FIELD(record.keepSteps)},
        {.path = "record.keep_first",
         .label = "Keep first",
         .unit = "steps",
         .help = "First steps whose spans are kept as well.",
         .range = {.minimum = 0, .maximum = kMany},
         .field = FIELD(record.keepFirst)},
        {.path = "record.max_gib",
         .label = "Largest recording",
         .unit = "GiB",
         .help = "Size of a rank's recording at which spans of old steps are deleted earlier.",
         .range = {.minimum = 0, .maximum = 1e6, .minimumExcluded = true},
         .field = FIELD(record.maxGib)},
    };
}
#undef FIELD

/// Enumerations bring their choices along, unless fewer of them are allowed.
static void addChoices(Key &key)
{
    if (!key.choices.empty())
        return;
    RunConfiguration defaults;
    std::visit(
        [&](const auto &field) {
            using F = std::remove_cvref_t<decltype(field)>;
            if constexpr (std::is_enum_v<std::remove_pointer_t<F>>)
                key.choices.assign(std::begin(Names<std::remove_pointer_t<F>>::texts),
                                   std::end(Names<std::remove_pointer_t<F>>::texts));
        },
        key.field(defaults));
}

std::span<const Key> keys()
{
    static const std::vector<Key> table = [] {
        std::vector<Key> all;
        for (std::vector<Key> part : {runKeys(), trainKeys(), optimizerKeys(), parallelKeys(), memoryKeys(),
                                      offloadKeys(), loraKeys(), keepingKeys()})
            all.insert(all.end(), part.begin(), part.end());
        for (Key &key : all)
            addChoices(key);
        return all;
    }();
    return table;
}

} // namespace shardscope::config
