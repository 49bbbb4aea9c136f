// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/cli/program.h"

#include <fstream>

namespace shardscope::test {

/// shardscope-cli with ranks that have no model, and a small text as data.
class FakeRankCommandLine : public CommandLine
{
public:
    FakeRankCommandLine()
    {
        set("SHARDSCOPE_WORKER", (binFolder() / "shardscope_fake_rank").string());
        std::ofstream text(data());
        for (int line = 0; line < 2000; ++line)
            text << "the quick brown fox jumps over the lazy dog\n";
    }
    std::filesystem::path data() const { return folder() / "a text.txt"; }
    /// A run's command line: tiny on two CPU ranks.
    std::vector<std::string> runArguments(const std::string &name, std::vector<std::string> more = {}) const
    {
        std::vector<std::string> all = {"run", "--preset", "tiny", "--data", data().string(),   "--ranks",
                                        "2",   "--device", "cpu",  "--set",  "run.name=" + name};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    /// What the ranks do, and how many steps they take.
    void ranksDo(const std::string &deeds, int steps, int stepMs = 10)
    {
        set("FAKE_RANK", deeds);
        set("FAKE_STEPS", std::to_string(steps));
        set("FAKE_STEP_MS", std::to_string(stepMs));
    }
};

} // namespace shardscope::test
