// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/program.h"

#include "core/base/clock.h"
#include "core/base/file.h"

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace shardscope::test {

static std::vector<std::string> environmentWith(const Program::Variables &variables)
{
    std::vector<std::string> all;
    for (char **entry = ::environ; *entry; ++entry) {
        const std::string text(*entry);
        if (!variables.contains(text.substr(0, text.find('='))))
            all.push_back(text);
    }
    for (const auto &[name, value] : variables)
        all.push_back(name + "=" + value);
    return all;
}

static std::vector<char *> pointers(std::vector<std::string> &words)
{
    std::vector<char *> all;
    for (std::string &word : words)
        all.push_back(word.data());
    all.push_back(nullptr);
    return all;
}

Program::Program(const fs::path &program, const std::vector<std::string> &arguments, const Variables &variables,
                 const fs::path &outputFolder, int terminal)
    : m_out(outputFolder / "out")
    , m_errors(outputFolder / "errors")
{
    fs::create_directories(outputFolder);
    std::vector<std::string> words = {program.string()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<std::string> environment = environmentWith(variables);
    const std::vector<char *> argv = pointers(words);
    const std::vector<char *> envp = pointers(environment);
    m_pid = ::fork();
    if (m_pid != 0)
        return;
    if (terminal >= 0) {
        ::setsid();
        ::ioctl(terminal, TIOCSCTTY, 0);
        for (int fd = 0; fd < 3; ++fd)
            ::dup2(terminal, fd);
        ::close(terminal);
    } else {
        ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
        ::dup2(::open(m_out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), STDOUT_FILENO);
        ::dup2(::open(m_errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), STDERR_FILENO);
    }
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
}

Program::Program(Program &&other) noexcept
    : m_pid(std::exchange(other.m_pid, -1))
    , m_out(other.m_out)
    , m_errors(other.m_errors)
{
}

Program::~Program()
{
    if (m_pid > 0) {
        ::kill(m_pid, SIGKILL);
        ::waitpid(m_pid, nullptr, 0);
    }
}

void Program::signal(int number) const
{
    if (m_pid > 0)
        ::kill(m_pid, number);
}

std::string Program::outputSoFar() const
{
    return readTextFile(m_out).value_or("");
}

std::string Program::errorsSoFar() const
{
    return readTextFile(m_errors).value_or("");
}

Finished Program::wait(std::chrono::seconds patience)
{
    int status = 0;
    const bool ended = eventually([&] { return ::waitpid(m_pid, &status, WNOHANG) == m_pid; }, patience);
    Finished finished;
    finished.out = outputSoFar();
    finished.errors = readTextFile(m_errors).value_or("");
    EXPECT_TRUE(ended) << "did not end in time\n" << finished.out << finished.errors;
    if (!ended)
        return finished;
    m_pid = -1;
    if (WIFEXITED(status))
        finished.exitCode = WEXITSTATUS(status);
    else
        finished.signal = WTERMSIG(status);
    return finished;
}

fs::path binFolder()
{
    const char *named = std::getenv("SHARDSCOPE_BIN");
    return named ? fs::path(named) : fs::read_symlink("/proc/self/exe").parent_path();
}

bool eventually(const std::function<bool()> &condition, std::chrono::seconds patience)
{
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline)
            return false;
        std::this_thread::sleep_for(5ms);
    }
    return true;
}

CommandLine::CommandLine()
{
    set("HOME", folder().string());
    set("XDG_DATA_HOME", (folder() / "data").string());
    set("XDG_CACHE_HOME", (folder() / "cache").string());
    set("XDG_CONFIG_HOME", (folder() / "config").string());
    set("XDG_RUNTIME_DIR", folder().string());
    set("OMP_NUM_THREADS", "1");
}

Program CommandLine::start(const std::vector<std::string> &arguments, int terminal)
{
    const fs::path output = folder() / ("output-" + std::to_string(++m_started));
    return Program(binFolder() / "shardscope-cli", arguments, m_variables, output, terminal);
}

Program CommandLine::startThrough(std::vector<std::string> wrapper, const std::vector<std::string> &arguments)
{
    const fs::path program = wrapper.front();
    wrapper.erase(wrapper.begin());
    wrapper.push_back((binFolder() / "shardscope-cli").string());
    wrapper.insert(wrapper.end(), arguments.begin(), arguments.end());
    return Program(program, wrapper, m_variables, folder() / ("output-" + std::to_string(++m_started)));
}

run::RunStatus CommandLine::waitFor(const std::string &name,
                                    const std::function<bool(const run::RunStatus &)> &condition,
                                    std::chrono::seconds patience) const
{
    run::RunStatus last;
    const bool held = eventually(
        [&] {
            const auto status = run::currentStatus(runFolder(name), realtimeNs());
            if (status)
                last = *status;
            return status && condition(*status);
        },
        patience);
    EXPECT_TRUE(held) << "the run " << name << ": " << toJson(last);
    return last;
}

} // namespace shardscope::test
