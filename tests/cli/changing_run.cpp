// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/changing_run.h"

#include <algorithm>

using nlohmann::json;

namespace shardscope::test {

std::vector<Change> ChangingRun::changes() const
{
    std::vector<Change> all = {
        {"none", {{"parallel.strategy", "none"}}},
        {"grad_op", {{"parallel.strategy", "grad_op"}}},
        {"a unit", {{"parallel.strategy", "full"}}, "block.1"},
        {"hybrid", {{"parallel.strategy", "hybrid"}}},
        {"not hybrid", {}},
        {"block", {{"parallel.strategy", "full"}, {"memory.recompute", "block"}}},
        {"every second", {{"memory.recompute_every", "2"}}},
        {"selective", {{"memory.recompute", "selective"}, {"memory.recompute_every", "1"}}},
        {"optimizer in a file", {{"memory.recompute", "off"}, {"offload.optimizer", "nvme"}}},
        {"both in files",
         {{"offload.parameters", "nvme"}, {"parallel.reduce_every", "step"}, {"record.level", "full"}}},
    };
    if (m_device == DeviceKind::Cuda) {
        all.push_back({"optimizer on the host", {{"offload.parameters", "none"}, {"offload.optimizer", "cpu"}}});
        all.push_back({"all on the host", {{"offload.parameters", "cpu"}, {"offload.gradients", "cpu"}}});
        all.push_back({"activations on the host",
                       {{"offload.parameters", "none"},
                        {"offload.gradients", "none"},
                        {"offload.optimizer", "none"},
                        {"memory.activation_offload", "true"},
                        {"parallel.strategy", "none"}}}); // what is whole anew comes from the host
    }
    Change back{"back", {{"parallel.reduce_every", "micro_batch"}, {"record.level", "light"}}};
    if (m_device == DeviceKind::Cuda)
        back.values.insert(back.values.end(), {{"memory.activation_offload", "false"}, {"parallel.strategy", "full"}});
    else
        back.values.insert(back.values.end(), {{"offload.optimizer", "none"}, {"offload.parameters", "none"}});
    all.push_back(std::move(back));
    all.push_back({"late", {{"parallel.prefetch", "off"}, {"parallel.forward_prefetch", "false"}}, {}, 20});
    all.push_back({"not late", {}, {}, 30});
    all.push_back({"compared", {{"parallel.strategy", "none"}}, {}, 20});
    return all;
}

std::vector<std::string> ChangingRun::options(const std::string &steps)
{
    // A rate so low that rounding does not grow over the steps that a busy machine makes meanwhile. Every step keeps
    // its spans and samples: they are looked at afterwards.
    return {"--set", "optimizer.learning_rate=1e-4", "--set",   "optimizer.min_learning_rate=1e-4",
            "--set", "record.keep_steps=1000000",    "--steps", steps};
}

void ChangingRun::start()
{
    m_run.emplace(cli.start(arguments(kName, options("1000000"))));
    cli.waitFor(kName, [](const auto &s) { return s.state == RunState::Running; });
    m_steps.emplace(cli.start({"attach", kName, "--format", "json"}));
    waitForStep(kStart);
}

void ChangingRun::waitForStep(int64_t step)
{
    EXPECT_TRUE(eventually([&] {
        const std::string text = m_steps->outputSoFar();
        const size_t begin = text.rfind(R"({"event":"step",)");
        const size_t end = begin == std::string::npos ? begin : text.find('\n', begin);
        return end != std::string::npos && json::parse(text.substr(begin, end - begin))["data"]["step"] >= step;
    })) << "no step "
        << step;
}

/// Each change is in force for two steps at least before the next one can be.
void ChangingRun::goThroughEveryMode()
{
    for (const Change &change : changes()) {
        const int64_t first = make(change);
        ASSERT_GT(first, m_made.empty() ? kStart : m_made.back().second + 1) << change.name;
        m_made.emplace_back(change, first);
        if (change.stepsAfter > 0)
            waitForStep(first + change.stepsAfter);
        settled(change);
        if (HasFailure())
            return;
    }
}

void ChangingRun::stop()
{
    const Finished stopped = cli.run({"stop", kName});
    EXPECT_EQ(stopped.exitCode, 0) << stopped.errors;
    EXPECT_EQ(m_run->wait().exitCode, 0) << cli.run({"logs", kName}).out;
    m_steps->wait();
    m_recording.emplace(
        store::Recording::open(cli.runFolder(kName).root(), {.cacheFolder = cli.folder() / "merged"}).value());
    m_last = run::readStatus(cli.runFolder(kName)).value().step.value();
}

int64_t ChangingRun::firstStep(const std::string &name) const
{
    const auto made = std::ranges::find(m_made, name, [](const auto &entry) { return entry.first.name; });
    EXPECT_NE(made, m_made.end()) << name;
    return made == m_made.end() ? 0 : made->second;
}

} // namespace shardscope::test
