// SPDX-License-Identifier: Apache-2.0
// `set` on a running job of two real ranks, through every mode: the curve stays that of the untouched run, memory
// changes as it should and back, and the recording tells of it.
#include "profiler/analysis/change_effect.h"
#include "tests/cli/with_worker.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <map>

using namespace shardscope;
using nlohmann::json;

namespace {

using Bytes = std::map<std::string, int64_t>; ///< by category

/// What a rank held at the beginning of a step, before anything of it was done, and its activations in it at the most.
struct Held
{
    Bytes memory;
    Bytes file;
    int64_t mostActivations = 0;
};

/// The first step under each change of the job.
struct Changes
{
    int64_t none, gradOp, hybrid;
    int64_t block, everySecond, selective;
    int64_t optimizer, both, back;
    int64_t late, undone, compared;
    std::vector<int64_t> all() const
    {
        return {none, gradOp, hybrid, block, everySecond, selective, optimizer, both, back, late, undone, compared};
    }
};

class WithWorkerSet : public test::WithWorker
{
protected:
    static std::vector<std::string> options(const std::string &steps)
    {
        std::vector<std::string> all = test::kConstantRate;
        // Every step keeps its spans and samples: they are looked at afterwards.
        all.insert(all.end(), {"--set", "record.keep_steps=1000000", "--steps", steps});
        return all;
    }
    /// Starts the job, and a listener to its steps.
    void start()
    {
        m_run.emplace(cli.start(arguments("touched", options("1000000"))));
        cli.waitFor("touched", [](const auto &s) { return s.state == RunState::Running; });
        m_steps.emplace(cli.start({"attach", "touched", "--format", "json"}));
        waitForStep(kStart);
    }
    void waitForStep(int64_t step)
    {
        EXPECT_TRUE(test::eventually([&] {
            const std::string text = m_steps->outputSoFar();
            const size_t begin = text.rfind(R"({"event":"step",)");
            const size_t end = begin == std::string::npos ? begin : text.find('\n', begin);
            return end != std::string::npos && json::parse(text.substr(begin, end - begin))["data"]["step"] >= step;
        })) << "no step "
            << step;
    }
    /// The first step under what is set.
    int64_t set(std::vector<std::string> what)
    {
        what.insert(what.begin(), {"set", "touched"});
        what.insert(what.end(), {"--format", "json"});
        const test::Finished finished = cli.run(what);
        EXPECT_EQ(finished.exitCode, 0) << finished.errors;
        const json step = finished.exitCode == 0 ? json::parse(finished.out)["step"] : json();
        EXPECT_TRUE(step.is_number()) << finished.out;
        return step.is_number() ? step.get<int64_t>() : 0;
    }
    Changes goThroughEveryMode();
    /// Stops the job and opens its recording; returns the number of its last step.
    int64_t stop()
    {
        const test::Finished stopped = cli.run({"stop", "touched"});
        EXPECT_EQ(stopped.exitCode, 0) << stopped.errors;
        EXPECT_EQ(m_run->wait().exitCode, 0) << cli.run({"logs", "touched"}).out;
        m_steps->wait();
        m_recording.emplace(
            store::Recording::open(cli.runFolder("touched").root(), {.cacheFolder = cli.folder() / "merged"}).value());
        return run::readStatus(cli.runFolder("touched")).value().step.value();
    }
    std::vector<std::vector<store::SqlValue>> query(const std::string &sql)
    {
        const auto result = m_recording->sql(sql);
        EXPECT_TRUE(result) << result.error().text << "\n" << sql;
        return result ? result->rows : std::vector<std::vector<store::SqlValue>>{};
    }
    static int64_t number(const store::SqlValue &value) { return std::get<int64_t>(value); }

    Held heldAt(int64_t step, int rank);
    /// After a whole step under it.
    Held heldUnder(int64_t firstStep, int rank) { return heldAt(firstStep + 1, rank); }
    void expectTheCurveOfAnUntouchedRun(int64_t steps);
    void expectMemoryAsSaid(const Changes &changes, int rank);
    void expectGathersAhead(int64_t step, bool ahead);
    void expectRecorded(const Changes &changes);
    void expectCardOfTheLast(const Changes &changes);

    static constexpr int64_t kStart = 4; ///< a step under the settings of the start, with moments
    std::optional<test::Program> m_run;
    std::optional<test::Program> m_steps;
    std::optional<store::Recording> m_recording;
};

/// Each change is in force for two steps at least before the next one can be.
Changes WithWorkerSet::goThroughEveryMode()
{
    Changes changes{};
    changes.none = set({"parallel.strategy=none"});
    changes.gradOp = set({"parallel.strategy=grad_op", "--unit", "block.1.*:strategy=full"});
    changes.hybrid = set({"parallel.strategy=hybrid"});
    changes.block = set({"parallel.strategy=full", "memory.recompute=block"});
    changes.everySecond = set({"memory.recompute_every=2"});
    changes.selective = set({"memory.recompute=selective", "memory.recompute_every=1"});
    changes.optimizer = set({"memory.recompute=off", "offload.optimizer=nvme"});
    changes.both = set({"offload.parameters=nvme", "parallel.reduce_every=step", "record.level=full"});
    changes.back = set({"offload.optimizer=none", "offload.parameters=none", "parallel.reduce_every=micro_batch",
                        "record.level=light"});
    changes.late = set({"parallel.prefetch=off", "parallel.forward_prefetch=false"});
    changes.undone = set({"--undo"});
    waitForStep(changes.undone + 30);
    changes.compared = set({"parallel.strategy=none"});
    waitForStep(changes.compared + 20);
    return changes;
}

Held WithWorkerSet::heldAt(int64_t step, int rank)
{
    std::string columns;
    for (const std::string_view category : Names<MemoryCategory>::texts)
        columns += fmt::format(", {}_bytes", category);
    Held held;
    for (const auto &row :
         query(fmt::format("select place{} from memory join step using (process_id, step_id) join process using "
                           "(process_id) where number = {} and rank = {} order by time_ns",
                           columns, step, rank))) {
        Bytes &first = std::get<std::string>(row[0]) == "nvme" ? held.file : held.memory;
        for (size_t i = 0; i < kMemoryCategories; ++i)
            first.emplace(Names<MemoryCategory>::texts[i], number(row[i + 1]));
        const int64_t activations = number(row[1 + static_cast<size_t>(MemoryCategory::Activations)]);
        held.mostActivations = std::max(held.mostActivations, activations);
    }
    EXPECT_FALSE(held.memory.empty()) << "no sample of step " << step;
    return held;
}

void WithWorkerSet::expectTheCurveOfAnUntouchedRun(int64_t steps)
{
    const test::Finished untouched = cli.run(arguments("untouched", options(std::to_string(steps))));
    ASSERT_EQ(untouched.exitCode, 0) << untouched.errors;
    const std::vector<double> expected = losses("untouched");
    const std::vector<double> found = losses("touched");
    ASSERT_EQ(found.size(), static_cast<size_t>(steps));
    ASSERT_EQ(expected.size(), found.size());
    for (size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found[i] / expected[i], 1, 1e-5) << "step " << i + 1;
}

void WithWorkerSet::expectMemoryAsSaid(const Changes &changes, int rank)
{
    SCOPED_TRACE(fmt::format("rank {}", rank));
    Held start = heldAt(kStart, rank);
    const int64_t parameters = start.memory["parameters"]; // fp32 masters
    const int64_t optimizer = start.memory["optimizer"];
    EXPECT_GT(parameters, 0);
    EXPECT_EQ(optimizer, 2 * parameters) << "two moments";
    for (const char *transient : {"gathered", "gradients", "activations", "communication", "temporary"})
        EXPECT_EQ(start.memory[transient], 0) << transient;

    for (const auto &[step, copies] : {std::pair{changes.none, 2}, {changes.gradOp, 1}, {changes.block, 1}}) {
        EXPECT_EQ(heldUnder(step, rank).memory["parameters"], copies * parameters) << "step " << step;
        EXPECT_EQ(heldUnder(step, rank).memory["optimizer"], copies * optimizer) << "step " << step;
    }
    // Two ranks are two groups of one, but for the block that a rule keeps sharded.
    EXPECT_GT(heldUnder(changes.hybrid, rank).memory["parameters"], parameters);
    EXPECT_LT(heldUnder(changes.hybrid, rank).memory["parameters"], 2 * parameters);

    const auto activations = [&](int64_t firstStep) { return heldUnder(firstStep, rank).mostActivations; };
    EXPECT_LT(activations(changes.block), activations(changes.everySecond));
    EXPECT_LT(activations(changes.everySecond), start.mostActivations);
    EXPECT_LT(activations(changes.block), activations(changes.selective));
    EXPECT_LT(activations(changes.selective), start.mostActivations);

    EXPECT_EQ(heldUnder(changes.optimizer, rank).memory["optimizer"], 0);
    EXPECT_GE(heldUnder(changes.optimizer, rank).file["optimizer"], optimizer);
    EXPECT_GE(heldUnder(changes.both, rank).file["parameters"], parameters);

    const Held back = heldUnder(changes.back, rank);
    EXPECT_EQ(back.memory, start.memory) << "to the byte";
    EXPECT_EQ(back.mostActivations, start.mostActivations);
    for (const auto &[category, bytes] : back.file)
        EXPECT_EQ(bytes, 0) << category;
}

/// By the order in which things were enqueued, whatever they took: a block's gather against the end of the computation
/// of the block in front of it, in forward and in backward.
void WithWorkerSet::expectGathersAhead(int64_t step, bool ahead)
{
    const auto gathers =
        query(fmt::format("select c.phase, later.name, c.enqueued_ns < s.start_ns + s.duration_ns from collective c "
                          "join step on step.step_id = c.step_id join unit later on later.unit_id = c.unit_id "
                          "join unit sooner on sooner.process_id = later.process_id "
                          "and sooner.ordinal = later.ordinal - iif(c.phase = 'forward', 1, -1) "
                          "join span s on s.step_id = c.step_id and s.unit_id = sooner.unit_id and s.phase = c.phase "
                          "join name on name.name_id = s.name_id "
                          "where step.number = {} and c.operation = 'all_gather' and later.kind = 'block' "
                          "and sooner.kind = 'block' and s.category = 'compute' and name.text = c.phase",
                          step));
    std::map<std::string, int> phases;
    for (const auto &row : gathers) {
        ++phases[std::get<std::string>(row[0])];
        EXPECT_EQ(number(row[2]) != 0, ahead)
            << std::get<std::string>(row[1]) << " in " << std::get<std::string>(row[0]) << " of step " << step;
    }
    EXPECT_GT(phases["forward"], 0);
    EXPECT_GT(phases["backward"], 0);
}

void WithWorkerSet::expectRecorded(const Changes &changes)
{
    const auto configs = query("select first_step, origin, count(*) from config group by 1, 2 order by 1");
    const std::vector<int64_t> steps = changes.all();
    ASSERT_EQ(configs.size(), 1 + steps.size());
    for (size_t i = 0; i < steps.size(); ++i) {
        EXPECT_EQ(number(configs[i + 1][0]), steps[i]);
        EXPECT_EQ(std::get<std::string>(configs[i + 1][1]), steps[i] == changes.undone ? "undo" : "user");
        EXPECT_EQ(number(configs[i + 1][2]), 2) << "on both ranks";
        const auto level = query(fmt::format("select distinct step.level, config.first_step from step join config "
                                             "using (process_id, config_id) where number = {}",
                                             steps[i]));
        ASSERT_EQ(level.size(), 1u) << "the ranks agree";
        EXPECT_EQ(std::get<std::string>(level[0][0]), steps[i] == changes.both ? "full" : "light");
        EXPECT_EQ(number(level[0][1]), steps[i]);
    }
    EXPECT_EQ(number(query("select count(*) from event where kind = 'toggle'")[0][0]),
              static_cast<int64_t>(2 * steps.size()));
    EXPECT_GT(number(query("select count(*) from allocation")[0][0]), 0);
}

double median(std::vector<double> values)
{
    std::ranges::sort(values);
    const size_t half = values.size() / 2;
    return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// The card before → after, by hand: medians of the steps since the change before, three left out after each.
void WithWorkerSet::expectCardOfTheLast(const Changes &changes)
{
    const auto effect = analysis::lastChangeEffect(*m_recording).value();
    ASSERT_TRUE(effect);
    EXPECT_EQ(effect->firstStep, changes.compared);
    std::map<std::string, std::vector<double>> before, after;
    for (const auto &row : query("select number, max(end_ns - start_ns), max(peak_allocated_bytes), "
                                 "sum(exposed_communication_ns) / 2.0 from step group by number order by number")) {
        const int64_t step = number(row[0]);
        auto &side = step < changes.compared ? before : after;
        const int64_t settled = (step < changes.compared ? changes.undone : changes.compared) + 3;
        if (step < std::max(settled, changes.compared - 100) || side["step"].size() == 100)
            continue;
        side["step"].push_back(static_cast<double>(number(row[1])));
        side["peak"].push_back(static_cast<double>(number(row[2])));
        side["exposed"].push_back(std::get<double>(row[3]));
    }
    for (const auto &[name, found] :
         {std::pair{"step", &effect->stepNs}, {"peak", &effect->peakBytes}, {"exposed", &effect->exposedNs}}) {
        ASSERT_TRUE(found->before && found->after) << name;
        EXPECT_EQ(found->before->steps, before[name].size()) << name;
        EXPECT_EQ(found->after->steps, after[name].size()) << name;
        EXPECT_DOUBLE_EQ(found->before->median, median(before[name])) << name;
        EXPECT_DOUBLE_EQ(found->after->median, median(after[name])) << name;
    }
    EXPECT_GT(effect->peakBytes.after->median, effect->peakBytes.before->median) << "every rank holds all now";
    EXPECT_TRUE(effect->peakBytes.significant());
}

TEST_F(WithWorkerSet, everyModeLeavesTheCurveAsItWasAndNothingBehind)
{
    start();
    const Changes changes = goThroughEveryMode();
    const int64_t last = stop();
    if (HasFailure())
        return;
    expectTheCurveOfAnUntouchedRun(last);
    for (const int rank : {0, 1})
        expectMemoryAsSaid(changes, rank);
    for (const int64_t step : {kStart, changes.back + 1, changes.undone + 1})
        expectGathersAhead(step, true);
    expectGathersAhead(changes.late + 1, false);
    expectRecorded(changes);
    expectCardOfTheLast(changes);
}

} // namespace
