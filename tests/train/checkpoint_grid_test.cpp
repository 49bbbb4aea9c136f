// SPDX-License-Identifier: Apache-2.0
// A checkpoint of any ranks, strategy and offload loads at any other: masters and moments to the bit, the next losses
// within 1e-5. By default a part of the grid, with every layout as a source and as a target; SHARDSCOPE_LONG_TESTS=1
// runs all of it.
#include "tests/files/temporary_in_memory.h"
#include "tests/train/training_job.h"

#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <map>

using namespace shardscope;
using namespace shardscope::testing;

namespace {

constexpr int64_t kWritten = 2; ///< the step of the checkpoint
constexpr int64_t kLast = 7;

struct Layout
{
    int ranks = 1;
    Strategy strategy = Strategy::Full;
    bool normsApart = false;   ///< in buckets of their own, that every rank holds whole
    bool inFiles = false;      ///< masters and moments: offloaded to nvme
    bool asynchronous = false; ///< the checkpoint is written behind the training
    std::string name() const
    {
        return fmt::format("{}_{}{}{}{}", ranks, toText(strategy), normsApart ? "_norms" : "", inFiles ? "_files" : "",
                           asynchronous ? "_behind" : "");
    }
};

std::vector<Layout> layouts()
{
    std::vector<Layout> all;
    for (const int ranks : {1, 2, 4}) {
        for (const Strategy strategy : {Strategy::Full, Strategy::GradOp, Strategy::None})
            all.push_back({ranks, strategy});
    }
    all.push_back({4, Strategy::Hybrid});
    all.push_back({4, Strategy::Full, true});
    all.push_back({.ranks = 2, .strategy = Strategy::Full, .inFiles = true, .asynchronous = true});
    all.push_back({.ranks = 4, .strategy = Strategy::GradOp, .inFiles = true});
    return all;
}

/// offloads: the folder for files of what is offloaded.
JobOptions jobAt(const Layout &layout, const std::filesystem::path &offloads)
{
    JobOptions options;
    options.worldSize = layout.ranks;
    options.configuration = TrainingJob::configurationFor(layout.ranks);
    options.configuration.train.steps = kLast;
    options.configuration.parallel.strategy = layout.strategy;
    options.configuration.checkpoint.keep = 100;
    options.configuration.checkpoint.asynchronous = layout.asynchronous;
    if (layout.inFiles) {
        options.configuration.offload.parameters = options.configuration.offload.optimizer = OffloadPlace::Nvme;
        options.configuration.offload.path = offloads.string();
    }
    if (layout.normsApart) {
        config::UnitRule rule;
        rule.kind = ParameterKind::Norm;
        rule.settings.push_back({"parallel.strategy", "none"});
        options.configuration.units.push_back(rule);
    }
    return options;
}

/// All elements of all states by "tensor state", as the files have them.
std::map<std::string, std::vector<float>> statesIn(const std::filesystem::path &checkpoint)
{
    auto reader = files::CheckpointReader::open(checkpoint).value();
    std::map<std::string, std::vector<float>> content;
    for (const files::BucketEntry &bucket : reader.manifest().buckets) {
        for (const files::StateEntry &state : bucket.states) {
            for (const files::TensorEntry &tensor : bucket.tensors) {
                std::vector<float> values(static_cast<size_t>(tensor.elements()));
                const auto done = reader.read({tensor.name, state.name, {0, tensor.elements()}},
                                              std::as_writable_bytes(std::span(values)));
                EXPECT_TRUE(done) << done.error().text;
                content.emplace(tensor.name + " " + state.name, std::move(values));
            }
        }
    }
    return content;
}

/// What differs between the tensors that a rank holds and the file's; padding must be zero.
std::string differenceIn(engine::Engine &engine, const std::map<std::string, std::vector<float>> &content)
{
    for (const engine::StateShard &shard : engine.stateShards()) {
        std::vector<float> expected(static_cast<size_t>(shard.held.size()));
        for (const engine::ParameterPlace &place : shard.layout->parameters) {
            const auto held = engine::intersect(place.range(), shard.held);
            const std::vector<float> &values = content.at(place.shape.name + " " + shard.state);
            for (int64_t i = held.begin; i < held.end; ++i)
                expected[static_cast<size_t>(i - shard.held.begin)] = values[static_cast<size_t>(i - place.offset)];
        }
        if (std::memcmp(expected.data(), shard.data_S.const_data_ptr(), expected.size() * sizeof(float)) != 0)
            return fmt::format("{} of {} on rank {}", shard.state, shard.layout->name, engine.communicator().rank());
    }
    return {};
}

/// One checkpoint of each layout, with what the run that went on from it undisturbed saw.
class CheckpointGrid : public ::testing::Test
{
protected:
    struct Source
    {
        Layout layout;
        std::filesystem::path checkpoint;
        std::vector<double> losses; ///< of the steps after it
        std::map<std::string, std::vector<float>> content;
    };

    Source write(const Layout &layout) const
    {
        JobOptions options = jobAt(layout, m_job.folder());
        options.configuration.checkpoint.every = kWritten;
        options.checkpointsOfRank = [&](int) { return m_job.folder() / layout.name(); };
        const JobOutcome outcome = m_job.run(options);
        EXPECT_TRUE(outcome.ends.front()) << outcome.ends.front().error().text;
        Source source{
            layout, m_job.folder() / layout.name() / files::CheckpointFolder::nameOf(kWritten), outcome.losses(), {}};
        source.losses.erase(source.losses.begin(), source.losses.begin() + kWritten);
        source.content = statesIn(source.checkpoint);
        return source;
    }

    void load(const Source &source, const Layout &target, bool train) const
    {
        SCOPED_TRACE(fmt::format("written at {}, loaded at {}", source.layout.name(), target.name()));
        JobOptions options = jobAt(target, m_job.folder());
        options.resumeFrom = source.checkpoint;
        std::mutex mutex;
        options.prepare = [&](model::Decoder &decoder) {
            const std::string difference = differenceIn(decoder.engine(), source.content);
            const std::scoped_lock lock(mutex);
            EXPECT_EQ(difference, "");
        };
        if (!train)
            options.configuration.train.steps = kWritten;
        const JobOutcome outcome = m_job.run(options);
        for (const auto &end : outcome.ends)
            EXPECT_TRUE(end) << end.error().text;
        if (!train)
            return;
        ASSERT_EQ(outcome.losses().size(), source.losses.size());
        for (size_t i = 0; i < source.losses.size(); ++i)
            EXPECT_NEAR(outcome.losses()[i], source.losses[i], 1e-5)
                << "step " << kWritten + 1 + static_cast<int64_t>(i);
    }

    TemporaryInMemory m_inMemory;
    TrainingJob m_job;
};

TEST_F(CheckpointGrid, EveryLayoutLoadsAtEveryOther)
{
    const bool all = std::getenv("SHARDSCOPE_LONG_TESTS") != nullptr;
    std::vector<Source> sources;
    for (const Layout &layout : layouts())
        sources.push_back(write(layout));
    const std::vector<Layout> targets = layouts();
    int loaded = 0;
    int trained = 0;
    for (size_t s = 0; s < sources.size(); ++s) {
        for (size_t t = 0; t < targets.size(); ++t) {
            const size_t turn = (s + t * 4) % targets.size(); // 0 once for each source and each target
            if (!all && turn > 1)
                continue;
            load(sources[s], targets[t], all || turn == 0);
            ++loaded;
            trained += all || turn == 0 ? 1 : 0;
        }
    }
    const size_t pairs = sources.size() * targets.size();
    fmt::print("{} of {} pairs loaded and compared, {} trained on.{}\n", loaded, pairs, trained,
               all ? "" : " SHARDSCOPE_LONG_TESTS=1 runs the others too.");
}

} // namespace
