// SPDX-License-Identifier: Apache-2.0
// Hugging Face's transformers as a peer: tests/peers/transformers_models.py, run by the wheels' Python.
#pragma once

#include "core/base/file.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <vector>

namespace shardscope::test {

/// Largest difference of a logit in fp32.
inline constexpr double kLogitTolerance = 1e-4;

class TransformersPeer
{
public:
    explicit TransformersPeer(std::filesystem::path folder)
        : m_folder(std::move(folder))
    {
    }
    /// Else tests skip: packaging/test_wheels.sh installs it. A machine that has tests but no build has its own.
    static bool isInstalled()
    {
        return hasWheels() || std::system((python() + " -c 'import transformers' >/dev/null 2>&1").c_str()) == 0;
    }
    static constexpr const char *kMissing = "transformers is not installed: packaging/test_wheels.sh installs it";

    /// Lines that the peer prints for this verb in the folder. Without cases: all that it knows.
    std::vector<std::string> run(const std::string &verb, const std::vector<std::string> &cases = {}) const
    {
        const std::filesystem::path output = m_folder / (verb + ".out");
        const std::filesystem::path errors = m_folder / (verb + ".err");
        std::string command = python() + " " + quoted(source() / "tests/peers/transformers_models.py") + " " + verb +
                              " " + quoted(m_folder);
        for (const std::string &name : cases)
            command += " " + name;
        const int status = std::system((command + " >" + quoted(output) + " 2>" + quoted(errors)).c_str());
        EXPECT_EQ(status, 0) << readTextFile(errors).value_or("");
        std::istringstream text(readTextFile(output).value_or(""));
        std::vector<std::string> lines;
        for (std::string line; std::getline(text, line);)
            lines.push_back(line);
        return lines;
    }

    /// Lines of a verb that compares: each a case's name and the largest difference of a logit.
    void expectSameLogits(const std::string &verb, const std::vector<std::string> &cases) const
    {
        const std::vector<std::string> lines = run(verb, cases);
        EXPECT_EQ(lines.size(), cases.size());
        for (const std::string &line : lines) {
            const std::string rest = line.substr(line.find(' ') + 1);
            char *end = nullptr;
            const double error = std::strtod(rest.c_str(), &end);
            EXPECT_TRUE(*end == '\0' && error < kLogitTolerance) << line;
        }
    }

private:
    static bool hasWheels() { return std::filesystem::exists(dependencies() / "test-wheels/transformers"); }
    /// As a shell takes it.
    static std::string python()
    {
        if (hasWheels())
            return "PYTHONPATH=" + quoted(dependencies() / "test-wheels") + " " +
                   quoted(dependencies() / "venv/bin/python");
        const char *asked = std::getenv("SHARDSCOPE_PYTHON");
        return asked && *asked ? quoted(asked) : "false";
    }
    static std::filesystem::path source()
    {
        const char *source = std::getenv("SHARDSCOPE_SOURCE");
        return source ? source : ".";
    }
    static std::filesystem::path dependencies()
    {
        const char *deps = std::getenv("SHARDSCOPE_DEPS");
        return deps && *deps ? std::filesystem::path(deps) : source() / ".deps";
    }
    /// Names of folders in tests have quotes in them.
    static std::string quoted(const std::filesystem::path &path)
    {
        std::string text = "'";
        for (const char c : path.string())
            text += c == '\'' ? std::string("'\\''") : std::string(1, c);
        return text + "'";
    }

    std::filesystem::path m_folder;
};

} // namespace shardscope::test
