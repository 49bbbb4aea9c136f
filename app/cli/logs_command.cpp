// SPDX-License-Identifier: Apache-2.0
#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "app/cli/prepared_run.h"
#include "core/base/clock.h"
#include "core/control/line_splitter.h"
#include "core/run/run_status.h"

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>
#include <unistd.h>

namespace fs = std::filesystem;

namespace shardscope::cli {

/// One rank's log, read on from where it was left.
class LogReader
{
public:
    LogReader(fs::path file, std::string prefix)
        : m_file(std::move(file))
        , m_prefix(std::move(prefix))
    {
    }
    /// Prints the lines that came since; with `atEnd` also a last one without its newline.
    bool print(Output &out, bool atEnd);

private:
    fs::path m_file;
    std::string m_prefix;
    std::streamoff m_position = 0;
    std::string m_pending;
};

bool LogReader::print(Output &out, bool atEnd)
{
    std::ifstream in(m_file, std::ios::binary);
    if (!in)
        return false;
    in.seekg(m_position);
    char bytes[65536];
    while (in.read(bytes, sizeof bytes), in.gcount() > 0) {
        m_position += in.gcount();
        m_pending.append(bytes, static_cast<size_t>(in.gcount()));
        for (size_t newline; (newline = m_pending.find('\n')) != std::string::npos;) {
            out.result(m_prefix + m_pending.substr(0, newline));
            m_pending.erase(0, newline + 1);
        }
    }
    if (atEnd && !m_pending.empty())
        out.result(m_prefix + std::exchange(m_pending, {}));
    return true;
}

/// Ranks that have a log in this attempt, ascending.
static std::vector<int> ranksWithLogs(const run::RunFolder &folder, int attempt)
{
    std::vector<int> ranks;
    std::error_code error;
    while (fs::exists(folder.logFile(attempt, static_cast<int>(ranks.size())), error))
        ranks.push_back(static_cast<int>(ranks.size()));
    return ranks;
}

static bool isLive(const run::RunFolder &folder, int attempt)
{
    const auto status = run::currentStatus(folder, realtimeNs());
    return status && status->live() && status->attempt == attempt;
}

static void follow(std::vector<LogReader> &readers, Output &out, const run::RunFolder &folder, int attempt)
{
    for (;;) {
        const bool live = isLive(folder, attempt);
        for (LogReader &reader : readers)
            reader.print(out, !live);
        if (!live)
            return;
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
}

int logsCommand(const LogsOptions &options)
{
    const auto folder = run::findRun(options.run, runsDirectory());
    if (!folder)
        return failWith(kWrongInput, folder.error().text);
    const int attempt = options.attempt.value_or(folder->lastAttempt());
    const std::vector<int> present = ranksWithLogs(*folder, attempt);
    if (present.empty())
        return failWith(kWrongInput, fmt::format("The run {} has no logs of attempt {}.", folder->name(), attempt));
    const int highest = present.back();
    if (options.rank && (*options.rank < 0 || *options.rank > highest))
        return failWith(kWrongInput, fmt::format("Attempt {} of the run {} has no rank {}: its ranks are 0 to {}.",
                                                 attempt, folder->name(), *options.rank, highest));
    std::vector<LogReader> readers;
    for (int rank : present) {
        const std::string prefix = present.size() > 1 && !options.rank ? fmt::format("[rank {}] ", rank) : "";
        if (options.rank.value_or(rank) == rank)
            readers.emplace_back(folder->logFile(attempt, rank), prefix);
    }
    Output out(STDOUT_FILENO);
    if (options.follow) {
        follow(readers, out, *folder, attempt);
        return kDone;
    }
    for (LogReader &reader : readers)
        reader.print(out, true);
    return kDone;
}

} // namespace shardscope::cli
