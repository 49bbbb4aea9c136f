// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/config/machine_facts.h"
#include "core/launch/launch_plan.h"
#include "tests/cli/program.h"

#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace shardscope::test {

/// A learning rate that does not depend on the number of steps, so that runs of different lengths have one curve.
inline const std::vector<std::string> kConstantRate = {"--set", "optimizer.min_learning_rate=0.001"};

/// shardscope-cli with the real worker, a small text as data, tiny on two ranks: on the CPU, or both on the first GPU.
class WithWorker : public testing::Test
{
protected:
    explicit WithWorker(DeviceKind device = DeviceKind::Cpu)
        : m_device(device)
    {
    }
    void SetUp() override
    {
        if (m_device == DeviceKind::Cuda) {
            if (const auto machine = config::probeMachine(); machine.cudaDevices.empty())
                GTEST_SKIP() << "no CUDA device: " << machine.cudaProblem;
        }
        // The command line looks beside itself, and this test is beside it.
        if (const auto worker = launch::findWorker(); !worker)
            GTEST_SKIP() << "shardscope-worker is not built: " << worker.error().text;
        std::ofstream text(data());
        for (int line = 0; line < 3000; ++line)
            text << line << " quick brown foxes jump over " << line % 97 << " lazy dogs\n";
    }
    std::filesystem::path data() const { return cli.folder() / "a text.txt"; }
    std::vector<std::string> arguments(const std::string &name, const std::vector<std::string> &more = {}) const
    {
        std::vector<std::string> all = {"run",
                                        "--preset",
                                        "tiny",
                                        "--data",
                                        data().string(),
                                        "--ranks",
                                        "2",
                                        "--device",
                                        std::string(toText(m_device)),
                                        "--set",
                                        "run.name=" + name,
                                        "--set",
                                        "train.sequence_length=32",
                                        "--set",
                                        "train.micro_batch=1"};
        if (m_device == DeviceKind::Cuda)
            all.emplace_back("--share-device");
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    /// A run that goes on until somebody ends it, after its first steps.
    Program startEndless(const std::string &name, std::vector<std::string> more = {})
    {
        more.insert(more.end(), {"--steps", "1000000"});
        Program program = cli.start(arguments(name, more));
        cli.waitFor(name, [](const auto &s) { return s.state == RunState::Running && s.step > 1; });
        return program;
    }
    /// What `sql` answers.
    nlohmann::json rows(const std::string &name, const std::string &query)
    {
        const Finished sql = cli.run({"sql", name, query, "--format", "json"});
        EXPECT_EQ(sql.exitCode, 0) << sql.errors;
        return sql.exitCode == 0 ? nlohmann::json::parse(sql.out)["rows"] : nlohmann::json::array();
    }
    /// Of each step, ascending.
    std::vector<double> losses(const std::string &name)
    {
        std::vector<double> all;
        for (const auto &row :
             rows(name, "select distinct number, loss from step where loss is not null order by number"))
            all.push_back(row[1]);
        return all;
    }
    CommandLine cli;
    const DeviceKind m_device;
};

} // namespace shardscope::test
