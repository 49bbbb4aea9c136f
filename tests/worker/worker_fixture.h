// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/files/temporary_folder.h"
#include "tests/worker/program.h"

#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>

namespace shardscope::testing {

/// A configuration, a text and a place for a run, in a folder with an awkward name.
class WorkerFixture : public ::testing::Test
{
protected:
    WorkerFixture()
    {
        std::ofstream text(m_folder.path() / "text.txt");
        for (int line = 0; line < 1500; ++line)
            text << "line " << line * line % 97 << " of a text that a small model can learn\n";
        configure("");
    }
    /// Writes the configuration, with more lines of [train].
    void configure(const std::string &train)
    {
        std::ofstream(m_config) << "[model]\npreset = \"tiny\"\n[data]\npath = '''"
                                << (m_folder.path() / "text.txt").string()
                                << "'''\n[parallel]\ndevice = \"cpu\"\n[train]\nmicro_batch = 2\nsequence_length = 32\n"
                                << train;
    }
    std::vector<std::string> command(std::vector<std::string> more = {}) const
    {
        std::vector<std::string> all = {workerProgram(), m_config.string(), "--out", m_run.string()};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    /// Of a rank of a job of `ranks` at that port; without a port: of a lone process.
    static std::map<std::string, std::string> environment(int rank = 0, int ranks = 1, int port = 0)
    {
        std::map<std::string, std::string> all = {{"RANK", ""},
                                                  {"WORLD_SIZE", ""},
                                                  {"LOCAL_RANK", ""},
                                                  {"MASTER_ADDR", ""},
                                                  {"MASTER_PORT", ""},
                                                  {"LOCAL_WORLD_SIZE", ""},
                                                  {"OMP_NUM_THREADS", "1"},
                                                  {"TORCHELASTIC_USE_AGENT_STORE", ""}};
        if (port > 0) {
            all["RANK"] = all["LOCAL_RANK"] = std::to_string(rank);
            all["WORLD_SIZE"] = std::to_string(ranks);
            all["MASTER_PORT"] = std::to_string(port);
        }
        return all;
    }
    std::filesystem::path log(int rank = 0) const { return m_folder.path() / fmt::format("output-{}", rank); }

    TemporaryFolder m_folder;
    std::filesystem::path m_config = m_folder.path() / "run.toml";
    std::filesystem::path m_run = m_folder.path() / "the run";
};

} // namespace shardscope::testing
