// SPDX-License-Identifier: Apache-2.0
#include "app/cli/status_text.h"

#include "app/cli/output.h"
#include "core/base/text.h"
#include "core/files/checkpoint_folder.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace shardscope::cli {

using run::RunStatus;

static std::string stepOf(const RunStatus &status)
{
    if (!status.step && !status.steps)
        return {};
    return fmt::format("{}/{}", status.step.value_or(0),
                       status.steps ? std::to_string(*status.steps) : std::string("?"));
}

std::string stepLine(const RunStatus &status)
{
    std::string line = "step " + stepOf(status);
    if (status.stepState && *status.stepState != StepState::Ok)
        line += fmt::format("  {}", toText(*status.stepState));
    if (status.loss)
        line += fmt::format("  loss {:.4f}", *status.loss);
    if (status.lossScale)
        line += fmt::format("  scale {:g}", *status.lossScale);
    if (status.skippedSteps > 0)
        line += fmt::format("  {} skipped", status.skippedSteps);
    if (status.validationLoss)
        line += fmt::format("  validation {:.4f}", *status.validationLoss);
    if (status.tokensPerSecond)
        line += fmt::format("  {} tok/s", formatCount(std::round(*status.tokensPerSecond)));
    if (status.stepNs)
        line += fmt::format("  {}/step", formatDuration(*status.stepNs));
    if (status.peakAllocatedBytes)
        line += fmt::format("  peak {}", formatBytes(*status.peakAllocatedBytes));
    if (status.exposedCommunicationShare)
        line += fmt::format("  exposed {:.0f} %{}", *status.exposedCommunicationShare * 100,
                            status.ofRankZero() ? " (rank 0)" : "");
    return line;
}

std::string progressLine(const RunStatus &status)
{
    constexpr int kCells = 16;
    const int64_t steps = status.steps.value_or(0);
    const int64_t step = std::clamp<int64_t>(status.step.value_or(0), 0, std::max<int64_t>(steps, 0));
    const auto full = static_cast<int>(steps > 0 ? step * kCells / steps : 0);
    std::string line = "[";
    for (int cell = 0; cell < kCells; ++cell)
        line += cell < full ? "█" : "·";
    line += "] " + stepLine(status);
    if (status.state != RunState::Running && status.state != RunState::Starting)
        line += fmt::format("  ({})", stateWord(status));
    else if (status.stepNs && step < steps)
        line += fmt::format("  {} left", formatDuration(*status.stepNs * (steps - step)));
    return line;
}

static std::string indented(const std::string &text)
{
    std::string out = "    ";
    for (char c : text) {
        out += c;
        if (c == '\n')
            out += "    ";
    }
    return out;
}

std::string failureText(const run::RunFolder &folder, const RunStatus &status)
{
    if (!status.failure)
        return {};
    const run::RunFailure &failure = *status.failure;
    std::string text = fmt::format("The run {} failed: {}.", folder.name(), run::describeEnd(failure));
    if (!failure.text.empty())
        text += "\n" + indented(failure.text);
    if (failure.signal == 9)
        text += "\nIf nobody killed it, the system had no memory left (see: dmesg). A smaller train.micro_batch needs "
                "less.";
    if (failure.rank)
        text += fmt::format("\nIts log: {}", folder.logFile(status.attempt, *failure.rank).string());
    return text;
}

std::string describe(const run::RunSummary &summary)
{
    const RunStatus &status = summary.status;
    std::string text = fmt::format("{}  {}", summary.shownName(), stateWord(status));
    if (!summary.problem.empty())
        return text + "\n  " + summary.problem;
    if (status.stoppedEarly())
        text += fmt::format(" at step {} of {}", status.step.value_or(0), *status.steps);
    text += fmt::format("\n  folder      {}\n  attempt     {}", summary.folder.root().string(), status.attempt);
    const std::string steps = stepOf(status);
    if (!steps.empty())
        text += "\n  progress    " + stepLine(status);
    if (status.checkpointStep)
        text += fmt::format("\n  checkpoint  step {}", *status.checkpointStep);
    for (const run::RankStatus &rank : status.ranks)
        text += fmt::format("\n  rank {}      {}, pid {}", rank.rank, toText(rank.state), rank.pid);
    if (!status.recordingProblem.empty())
        text += fmt::format("\n  recording   {}", status.recordingProblem);
    if (status.failure)
        text += "\n" + failureText(summary.folder, status);
    if (status.state == RunState::Lost && files::CheckpointFolder(summary.folder.checkpointsFolder()).newest())
        text += fmt::format("\n  Its supervisor is gone. Go on with: shardscope-cli run --resume \"{}\"",
                            summary.folder.root().string());
    else if (status.state == RunState::Lost)
        text += "\n  Its supervisor is gone, without a checkpoint to go on from. Start the run anew.";
    return text;
}

/// Columns that a UTF-8 text takes, one a code point.
static size_t widthOf(const std::string &text)
{
    return static_cast<size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// Longer names would push the other columns off a terminal.
static std::string shortened(const std::string &name)
{
    constexpr int kColumns = 48;
    return widthOf(name) <= kColumns ? name : cutToWidth(name, kColumns - 1) + "…";
}

std::string runTable(const std::vector<run::RunSummary> &runs)
{
    using Row = std::array<std::string, 6>;
    std::vector<Row> rows = {{"run", "state", "step", "loss", "tok/s", "peak"}};
    for (const run::RunSummary &each : runs) {
        const RunStatus &s = each.status;
        rows.push_back({shortened(each.shownName()), each.problem.empty() ? std::string(stateWord(s)) : "unreadable",
                        stepOf(s), s.loss ? fmt::format("{:.4f}", *s.loss) : "",
                        s.tokensPerSecond ? formatCount(std::round(*s.tokensPerSecond)) : "",
                        s.peakAllocatedBytes ? formatBytes(*s.peakAllocatedBytes) : ""});
    }
    std::array<size_t, 6> widths{};
    for (const Row &row : rows) {
        for (size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], widthOf(row[i]));
    }
    std::string text;
    for (const Row &row : rows) {
        std::string line;
        for (size_t i = 0; i < row.size(); ++i) {
            const std::string padding(widths[i] - widthOf(row[i]), ' ');
            line += i < 2 ? row[i] + padding + "  " : padding + row[i] + "  ";
        }
        text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return text;
}

} // namespace shardscope::cli
