// SPDX-License-Identifier: Apache-2.0
#include "tests/worker/program.h"

#include <arpa/inet.h>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace shardscope::testing {

Program::Program(std::vector<std::string> command, std::map<std::string, std::string> environment,
                 std::filesystem::path output)
    : m_output(std::move(output))
{
    std::vector<char *> arguments;
    for (std::string &word : command)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    // Before the fork: nobody finds what the program before it has left there.
    const int file = ::open(m_output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    m_pid = ::fork();
    if (m_pid != 0) {
        ::close(file);
        return;
    }
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
    for (const auto &[name, value] : environment) {
        if (value.empty())
            ::unsetenv(name.c_str());
        else
            ::setenv(name.c_str(), value.c_str(), 1);
    }
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
}

Program::~Program()
{
    if (m_pid > 0) {
        ::kill(m_pid, SIGKILL);
        ::waitpid(m_pid, nullptr, 0);
    }
}

int Program::wait(int patienceSeconds)
{
    for (int i = 0; i < patienceSeconds * 50; ++i) {
        int status = 0;
        if (::waitpid(m_pid, &status, WNOHANG) == m_pid) {
            m_pid = -1;
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return -1;
}

void Program::signal(int number) const
{
    ::kill(m_pid, number);
}

std::string Program::output() const
{
    std::ifstream file(m_output, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

bool Program::waitForOutput(const std::string &text, int patienceSeconds) const
{
    for (int i = 0; i < patienceSeconds * 50; ++i) {
        if (output().find(text) != std::string::npos)
            return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
}

std::string workerProgram()
{
    const char *bin = std::getenv("SHARDSCOPE_BIN");
    return (std::filesystem::path(bin ? bin : ".") / "shardscope-worker").string();
}

int freePort()
{
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    ::bind(fd, reinterpret_cast<sockaddr *>(&address), length);
    ::getsockname(fd, reinterpret_cast<sockaddr *>(&address), &length);
    ::close(fd);
    return ntohs(address.sin_port);
}

} // namespace shardscope::testing
