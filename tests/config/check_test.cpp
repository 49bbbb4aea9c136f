// SPDX-License-Identifier: Apache-2.0
#include "core/config/check.h"
#include "core/config/registry.h"
#include "core/shapes/known_models.h"
#include "tests/support/temporary_folder.h"

#include <fstream>
#include <gmock/gmock.h>

using namespace shardscope;
using namespace shardscope::config;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

MachineFacts machineWith(size_t gpus)
{
    MachineFacts machine;
    machine.cpuThreads = 8;
    machine.cudaDevices.resize(gpus,
                               {.name = "NVIDIA H200", .memoryBytes = int64_t{139} << 30, .computeCapability = 90});
    machine.cudaDriverVersion = gpus ? 13000 : 0;
    machine.cudaProblem = gpus ? "" : "there is no NVIDIA driver (libcuda.so.1) on this machine";
    return machine;
}

RunConfiguration with(std::initializer_list<std::string_view> assignments)
{
    RunConfiguration c;
    for (const std::string_view assignment : assignments) {
        const auto set = setAssignment(c, assignment);
        EXPECT_TRUE(set) << set.error().text;
    }
    return c;
}

ResolvedRun resolved(std::initializer_list<std::string_view> assignments, size_t gpus = 0)
{
    const auto run = resolveRun(with(assignments), machineWith(gpus), shapes::knownModels());
    EXPECT_TRUE(run) << run.error().text;
    return run.value_or(ResolvedRun{});
}

std::vector<Problem> problemsOf(const RunConfiguration &configuration, size_t gpus = 0)
{
    const CheckResult result = checkRun(configuration, machineWith(gpus), shapes::knownModels());
    EXPECT_EQ(result.resolved.has_value(), result.problems.empty());
    return result.problems;
}

MATCHER_P2(IsProblem, key, part, "")
{
    return arg.key == key && arg.message.find(part) != std::string::npos;
}

std::vector<int64_t> batchesOf(const ResolvedRun &run)
{
    const auto &train = run.configuration.train;
    return {train.globalBatch, train.microBatch, train.accumulation};
}

} // namespace

TEST(CheckRun, derivesWhatIsMissingOfTheBatches)
{
    EXPECT_THAT(batchesOf(resolved({})), ElementsAre(4, 4, 1));
    EXPECT_THAT(batchesOf(resolved({"parallel.ranks=2", "train.micro_batch=3", "train.accumulation=5"})),
                ElementsAre(30, 3, 5));
    EXPECT_THAT(batchesOf(resolved({"parallel.ranks=2", "train.global_batch=24", "train.micro_batch=3"})),
                ElementsAre(24, 3, 4));
    EXPECT_THAT(batchesOf(resolved({"parallel.ranks=2", "train.global_batch=24", "train.accumulation=3"})),
                ElementsAre(24, 4, 3));
    EXPECT_THAT(batchesOf(resolved({"train.global_batch=14"})), ElementsAre(14, 2, 7));
    EXPECT_THAT(batchesOf(resolved({"train.global_batch=2"})), ElementsAre(2, 2, 1));
    EXPECT_THAT(batchesOf(resolved({"train.global_batch=8", "train.micro_batch=8", "train.accumulation=1"})),
                ElementsAre(8, 8, 1));
}

TEST(CheckRun, namesContradictionsOfTheBatches)
{
    EXPECT_THAT(
        problemsOf(with({"parallel.ranks=2", "train.global_batch=16", "train.micro_batch=4", "train.accumulation=1"})),
        ElementsAre(IsProblem("train.global_batch", "= 2 × 4 × 1 = 8")));
    EXPECT_THAT(problemsOf(with({"parallel.ranks=3", "train.global_batch=16"})),
                ElementsAre(IsProblem("train.global_batch", "Use a multiple of 3")));
    EXPECT_THAT(problemsOf(with({"parallel.ranks=2", "train.global_batch=16", "train.micro_batch=3"})),
                ElementsAre(IsProblem("train.micro_batch", "doesn't divide the 8 sequences")));
    EXPECT_THAT(problemsOf(with({"train.global_batch=4", "train.micro_batch=8"})),
                ElementsAre(IsProblem("train.micro_batch", "doesn't divide the 4 sequences")));
    EXPECT_THAT(problemsOf(with({"parallel.ranks=1024", "train.micro_batch=1000000", "train.accumulation=1000000"})),
                ElementsAre(IsProblem("train.global_batch", "are more than")));
}

TEST(CheckRun, tellsAllProblemsAtOnceAndEachAtItsKey)
{
    EXPECT_THAT(problemsOf(with({"model.preset=tinny", "run.name=a/b", "optimizer.min_learning_rate=1",
                                 "optimizer.momentum=0.9", "train.validate_every=5", "data.validation=0"})),
                ElementsAre(IsProblem("run.name", "holds no slash"), IsProblem("model.preset", "Did you mean tiny?"),
                            IsProblem("optimizer.min_learning_rate", "above optimizer.learning_rate = 0.001"),
                            IsProblem("optimizer.momentum", "is for sgd"),
                            IsProblem("train.validate_every", "needs held-out data")));
}

TEST(CheckRun, takesALossScaleForFp16Alone)
{
    const ResolvedRun run = resolved({"precision.compute=fp16", "precision.scaler.initial=1024",
                                      "precision.scaler.growth_interval=100", "precision.reduce=bf16"});
    EXPECT_EQ(run.configuration.precision.scaler.initial, 1024);
    EXPECT_THAT(run.notes, testing::Contains(HasSubstr("fp16 by way of fp32")));
    EXPECT_THAT(
        problemsOf(with({"precision.compute=bf16", "precision.scaler.initial=1024", "precision.scaler.backoff=0.25"})),
        ElementsAre(IsProblem("precision.scaler.initial", "is for precision.compute = fp16: bf16 has fp32's"),
                    IsProblem("precision.scaler.backoff", "Give it its default, precision.scaler.backoff=0.5.")));
    resolved({"precision.compute=bf16", "precision.scaler.initial=65536", "precision.scaler.backoff=0.5"});
    RunConfiguration c;
    for (const char *bad : {"precision.scaler.initial=0.5", "precision.scaler.growth_factor=1",
                            "precision.scaler.backoff=1", "precision.scaler.backoff=0",
                            "precision.scaler.growth_interval=0", "precision.reduce=fp16", "precision.moments=fp16"})
        EXPECT_FALSE(setAssignment(c, bad)) << bad;
}

TEST(CheckRun, saysWhereABf16MomentDoesNotFall)
{
    EXPECT_THAT(resolved({"precision.moments=bf16", "optimizer.betas=0.9,0.999"}).notes,
                testing::Contains(HasSubstr("may never fall")));
    EXPECT_THAT(resolved({"precision.moments=bf16"}).notes, testing::Not(testing::Contains(HasSubstr("never fall"))));
}

TEST(CheckRun, checksFieldsThatWereSetWithoutTheRegistry)
{
    RunConfiguration c;
    c.train.steps = 0;
    c.optimizer.betas = {0.9};
    c.parallel.ranks = 0;
    EXPECT_THAT(problemsOf(c),
                ElementsAre(IsProblem("train.steps", "can't be 0"), IsProblem("optimizer.betas", "takes 2 numbers"),
                            IsProblem("parallel.ranks", "can't be 0")));
}

TEST(CheckRun, takesAModelFolderInThePresetsPlace)
{
    const test::TemporaryFolder folder;
    const std::string path = folder.path().string();
    const auto check = [&](std::initializer_list<std::string_view> assignments) {
        RunConfiguration configuration = with(assignments);
        configuration.model.path = path;
        return checkRun(configuration, machineWith(0), shapes::knownModels(path));
    };
    EXPECT_THAT(check({}).problems, ElementsAre(IsProblem("model.path", "has no config.json")));
    std::ofstream(folder.path() / "config.json")
        << R"({"model_type": "qwen2", "vocab_size": 77, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
               "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 300})";
    const auto good = check({});
    ASSERT_TRUE(good.resolved.has_value());
    EXPECT_EQ(good.resolved->model.vocabulary, 77);
    EXPECT_EQ(good.resolved->configuration.model.preset, ""); // so that what is written down names one model
    EXPECT_THAT(check({"train.sequence_length=301"}).problems,
                ElementsAre(IsProblem("train.sequence_length", "at most 300 tokens")));
    EXPECT_THAT(check({"model.preset=tiny"}).problems,
                ElementsAre(IsProblem("model.path", "model.path and model.preset = tiny exclude each other")));
}

TEST(CheckRun, theHelpNamesEveryModel)
{
    std::vector<std::string> names;
    for (const KnownModel &model : shapes::knownModels())
        names.push_back(model.name);
    EXPECT_THAT((*findKey("model.preset"))->help, HasSubstr(fmt::format(": {}.", fmt::join(names, ", "))));
}

TEST(CheckRun, aSequenceIsNoLongerThanTheModels)
{
    EXPECT_TRUE(problemsOf(with({"model.preset=tiny", "train.sequence_length=2048"})).empty());
    EXPECT_THAT(problemsOf(with({"model.preset=tiny", "train.sequence_length=2049"})),
                ElementsAre(IsProblem("train.sequence_length", "at most 2048 tokens")));
}

TEST(CheckRun, theFinalRateIsATenthWhereNothingIsSaid)
{
    EXPECT_DOUBLE_EQ(resolved({"optimizer.learning_rate=1e-5"}).configuration.optimizer.minLearningRate, 1e-6);
    EXPECT_EQ(resolved({"optimizer.min_learning_rate=0"}).configuration.optimizer.minLearningRate, 0);
    EXPECT_THAT(resolved({"train.steps=10"}).notes, ElementsAre(HasSubstr("still climbs at the end")));
}

TEST(CheckRun, autoTakesGpusWhereThereAreAny)
{
    EXPECT_EQ(resolved({}, 1).configuration.parallel.device, "cuda");
    EXPECT_EQ(resolved({}, 1).device, DeviceKind::Cuda);
    EXPECT_EQ(resolved({}).configuration.parallel.device, "cpu");
    EXPECT_TRUE(resolved({}).notes.empty());
    MachineFacts machine = machineWith(0);
    machine.cudaDriverVersion = 12040;
    machine.cudaProblem = "the driver is old";
    EXPECT_THAT(resolveRun({}, machine, shapes::knownModels())->notes, ElementsAre(HasSubstr("the driver is old")));
}

TEST(CheckRun, givesEachRankADevice)
{
    EXPECT_THAT(resolved({"parallel.ranks=2"}, 4).deviceOfRank, ElementsAre(0, 1));
    EXPECT_THAT(resolved({"parallel.ranks=2", "parallel.devices=3,1"}, 4).deviceOfRank, ElementsAre(3, 1));
    EXPECT_THAT(resolved({"parallel.ranks=4", "parallel.share_device=true"}, 2).deviceOfRank, ElementsAre(0, 1, 0, 1));
    EXPECT_TRUE(resolved({"parallel.ranks=2", "parallel.device=cpu"}, 1).deviceOfRank.empty());
}

TEST(CheckRun, refusesDevicesThatAreNotThere)
{
    EXPECT_THAT(problemsOf(with({"parallel.ranks=2"}), 1),
                ElementsAre(IsProblem("parallel.ranks", "only 1 GPU is to be used")));
    EXPECT_THAT(problemsOf(with({"parallel.device=cuda"})),
                ElementsAre(IsProblem("parallel.device", "there is no NVIDIA driver")));
    EXPECT_THAT(problemsOf(with({"parallel.devices=2"}), 2),
                ElementsAre(IsProblem("parallel.devices", "names GPU 2, but there are only 2")));
    EXPECT_THAT(problemsOf(with({"parallel.devices=0,0", "parallel.ranks=2"}), 2),
                ElementsAre(IsProblem("parallel.devices", "names a GPU twice")));
    EXPECT_THAT(problemsOf(with({"parallel.devices=0"})),
                ElementsAre(IsProblem("parallel.devices", "the run is on the CPU")));
}

TEST(CheckRun, aMemoryCapIsOfAGpuAndNotMoreThanItHas)
{
    EXPECT_THAT(problemsOf(with({"memory.cap_bytes=1000000"})),
                ElementsAre(IsProblem("memory.cap_bytes", "the run is on the CPU")));
    EXPECT_THAT(problemsOf(with({"memory.cap_bytes=900000000000000"}), 1),
                ElementsAre(IsProblem("memory.cap_bytes", "more than the")));
    EXPECT_THAT(problemsOf(with({"memory.cap_bytes=1000000"}), 1), ElementsAre());
}

TEST(CheckRun, groupsDivideTheRanks)
{
    const auto c = resolved({"parallel.ranks=4", "parallel.strategy=hybrid"}).configuration;
    EXPECT_EQ(c.parallel.shardGroup, 0) << "auto: going on at three ranks, it has another half";
    EXPECT_THAT(problemsOf(with({"parallel.ranks=4", "parallel.strategy=hybrid", "parallel.shard_group=3"})),
                ElementsAre(IsProblem("parallel.shard_group", "doesn't divide parallel.ranks = 4")));
    EXPECT_THAT(problemsOf(with({"parallel.ranks=4", "parallel.reshard_group=3"})),
                ElementsAre(IsProblem("parallel.reshard_group", "doesn't divide the 4 ranks")));
}

TEST(CheckRun, activationsAreOffloadedFromAGpuOnly)
{
    const RunConfiguration offload = with({"memory.activation_offload=true", "memory.recompute=block"});
    EXPECT_THAT(problemsOf(offload), ElementsAre(IsProblem("memory.activation_offload", "and the run is on the CPU")));
    EXPECT_THAT(problemsOf(offload, 1), ElementsAre());
    RunConfiguration rule = with({"parallel.device=cpu"});
    rule.units.push_back({.match = "block.1.*", .settings = {{"memory.activation_offload", "true"}}});
    EXPECT_THAT(problemsOf(rule, 1), ElementsAre(IsProblem("memory.activation_offload", "of a [[unit]] moves")));
    rule.units.back().settings.front().value = "false";
    EXPECT_THAT(problemsOf(rule, 1), ElementsAre());
}

TEST(CheckRun, offloadToTheHostOfARunOnTheHostIsRefused)
{
    const RunConfiguration all = with({"offload.parameters=cpu", "offload.gradients=cpu", "offload.optimizer=cpu"});
    EXPECT_THAT(problemsOf(all), ElementsAre(IsProblem("offload.parameters", "or nvme for a file"),
                                             IsProblem("offload.gradients", "lies already. Use none."),
                                             IsProblem("offload.optimizer", "or nvme for a file")));
    EXPECT_THAT(problemsOf(all, 1), ElementsAre());
    EXPECT_THAT(problemsOf(with({"offload.parameters=nvme", "offload.optimizer=nvme"})), ElementsAre());
    RunConfiguration rule;
    rule.units.push_back({.match = "block.1.*", .settings = {{"offload.optimizer", "cpu"}}});
    EXPECT_THAT(problemsOf(rule), ElementsAre(IsProblem("unit", "in the rule for \"block.1.*\"")));
    RunConfiguration gradients;
    EXPECT_FALSE(setKey(gradients, "offload.gradients", "nvme").has_value());
}

TEST(CheckRun, adaptersHaveARankAndTargets)
{
    EXPECT_EQ(resolved({"lora.rank=16"}).configuration.lora.alpha, 16);
    EXPECT_EQ(resolved({"lora.rank=16", "lora.alpha=8"}).configuration.lora.alpha, 8);
    EXPECT_EQ(resolved({}).configuration.lora.rank, 0);
    EXPECT_THAT(problemsOf(with({"lora.targets=q_proj,v_proj"})),
                ElementsAre(IsProblem("lora.rank", "but lora.targets is given")));
    EXPECT_THAT(problemsOf(with({"lora.alpha=8"})), ElementsAre(IsProblem("lora.rank", "but lora.alpha is given")));
    EXPECT_THAT(problemsOf(with({"lora.rank=8", "lora.targets="})),
                ElementsAre(IsProblem("lora.targets", "name the weights")));
    RunConfiguration negative;
    EXPECT_FALSE(setKey(negative, "lora.rank", "-1").has_value());
    negative.lora.rank = -1;
    EXPECT_THAT(problemsOf(negative), ElementsAre(IsProblem("lora.rank", "lora.rank")));
}

TEST(ResolveRun, givesAllMessagesLineByLine)
{
    const auto run = resolveRun(with({"model.preset=x", "run.name=.."}), machineWith(0), shapes::knownModels());
    ASSERT_FALSE(run);
    EXPECT_EQ(std::ranges::count(run.error().text, '\n'), 1);
}
