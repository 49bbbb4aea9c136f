// SPDX-License-Identifier: Apache-2.0
// The one vocabulary of docs/contract.md. Each enumeration has toText() and fromText(), and all its values in order.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace shardscope {

enum class Strategy { Full, GradOp, None, Hybrid };
enum class ParameterKind { Embedding, Linear, Norm, Bias };
/// When backward gathers ahead: not, before a unit computes, or after it has.
enum class Prefetch { Off, Pre, Post };
enum class ReduceEvery { MicroBatch, Step };
enum class Recompute { Off, Block, Selective };
enum class OffloadPlace { None, Cpu, Nvme };
enum class Precision { Fp32, Bf16, Fp16 };
enum class DeviceKind { Cuda, Cpu };
enum class OptimizerKind { AdamW, Sgd };
/// What a step whose loss or gradient is no number does to the run. Off: the update may have been made already.
enum class OnNan { Stop, Skip, Off };
enum class RecordLevel { Off, Light, Full };
/// Each rank its ranges, or one safetensors file that other programs open.
enum class CheckpointFormat { Sharded, Full };
/// Whose bytes an allocation is. Masters and cached shards are parameters; what a collective filled is gathered.
enum class MemoryCategory {
    Parameters,
    Gathered,
    Gradients,
    Optimizer,
    Activations,
    Communication,
    Temporary,
    Input,
    Other
};
enum class SpanCategory { Compute, Communication, Copy, Host, Idle };
enum class Phase { Input, Forward, Recompute, Backward, Optimizer, Checkpoint, Validate };
enum class Operation { AllGather, ReduceScatter, AllReduce, Broadcast, AllToAll, Send, Recv };
enum class UnitKind { Embedding, Block, Head, Norm, Other };
enum class LaneKind { Phase, Thread, Stream };
enum class EventKind { Command, Toggle, Checkpoint, Recording, Warning, Nan, OutOfMemory, Death };
enum class RunState { Queued, Starting, Running, Paused, Stopping, Done, Failed, Lost };
enum class StepState { Ok, Nan, Inf, Skipped };

/// The texts of an enumeration, in the order of its values.
template <typename E>
struct Names;

#define SHARDSCOPE_NAMES(E, ...)                                                                                       \
    template <>                                                                                                        \
    struct Names<E>                                                                                                    \
    {                                                                                                                  \
        static constexpr std::string_view texts[] = {__VA_ARGS__};                                                     \
    }
SHARDSCOPE_NAMES(Strategy, "full", "grad_op", "none", "hybrid");
SHARDSCOPE_NAMES(ParameterKind, "embedding", "linear", "norm", "bias");
SHARDSCOPE_NAMES(Prefetch, "off", "pre", "post");
SHARDSCOPE_NAMES(ReduceEvery, "micro_batch", "step");
SHARDSCOPE_NAMES(Recompute, "off", "block", "selective");
SHARDSCOPE_NAMES(OffloadPlace, "none", "cpu", "nvme");
SHARDSCOPE_NAMES(Precision, "fp32", "bf16", "fp16");
SHARDSCOPE_NAMES(DeviceKind, "cuda", "cpu");
SHARDSCOPE_NAMES(OptimizerKind, "adamw", "sgd");
SHARDSCOPE_NAMES(OnNan, "stop", "skip", "off");
SHARDSCOPE_NAMES(RecordLevel, "off", "light", "full");
SHARDSCOPE_NAMES(CheckpointFormat, "sharded", "full");
SHARDSCOPE_NAMES(MemoryCategory, "parameters", "gathered", "gradients", "optimizer", "activations", "communication",
                 "temporary", "input", "other");
SHARDSCOPE_NAMES(SpanCategory, "compute", "communication", "copy", "host", "idle");
SHARDSCOPE_NAMES(Phase, "input", "forward", "recompute", "backward", "optimizer", "checkpoint", "validate");
SHARDSCOPE_NAMES(Operation, "all_gather", "reduce_scatter", "all_reduce", "broadcast", "all_to_all", "send", "recv");
SHARDSCOPE_NAMES(UnitKind, "embedding", "block", "head", "norm", "other");
SHARDSCOPE_NAMES(LaneKind, "phase", "thread", "stream");
SHARDSCOPE_NAMES(EventKind, "command", "toggle", "checkpoint", "recording", "warning", "nan", "out_of_memory", "death");
SHARDSCOPE_NAMES(RunState, "queued", "starting", "running", "paused", "stopping", "done", "failed", "lost");
SHARDSCOPE_NAMES(StepState, "ok", "nan", "inf", "skipped");
#undef SHARDSCOPE_NAMES

template <typename E>
constexpr std::string_view toText(E value)
{
    return Names<E>::texts[static_cast<size_t>(value)];
}

template <typename E>
constexpr std::optional<E> fromText(std::string_view text)
{
    for (size_t i = 0; i < std::size(Names<E>::texts); ++i) {
        if (Names<E>::texts[i] == text)
            return static_cast<E>(i);
    }
    return std::nullopt;
}

inline constexpr size_t kMemoryCategories = std::size(Names<MemoryCategory>::texts);

} // namespace shardscope
