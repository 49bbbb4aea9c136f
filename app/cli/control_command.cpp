// SPDX-License-Identifier: Apache-2.0
#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "app/cli/prepared_run.h"
#include "app/cli/status_text.h"
#include "core/base/clock.h"
#include "core/files/checkpoint_folder.h"
#include "core/run/json_access.h"

#include <chrono>
#include <unistd.h>

namespace shardscope::cli {

using control::RequestKind;
using nlohmann::json;

/// A step, or a checkpoint, of a large model takes its time.
static constexpr std::chrono::hours kPatience{1};

static std::string describeResult(RequestKind kind, const run::RunFolder &folder, const json &result)
{
    int64_t step = 0;
    run::take(result, "step", step);
    switch (kind) {
    case RequestKind::Pause:
        return fmt::format("Paused after step {}. Go on with: shardscope-cli unpause \"{}\"", step,
                           argumentFor(folder));
    case RequestKind::Unpause:
        return fmt::format("Goes on after step {}.", step);
    case RequestKind::Checkpoint: {
        std::string path;
        run::take(result, "path", path);
        return fmt::format("Checkpoint of step {}: {}", step, path);
    }
    default:
        if (!files::CheckpointFolder(folder.checkpointsFolder()).newest())
            return fmt::format("Ended after step {}, without a checkpoint to go on from.", step);
        return fmt::format("Ended after step {}. Go on with: shardscope-cli run --resume \"{}\"", step,
                           argumentFor(folder));
    }
}

/// A run that takes no commands, for good, is the wrong one to give them to: whoever asks has to change something.
tl::expected<control::ControlClient, int> connectTo(const run::RunFolder &folder)
{
    auto client = control::ControlClient::connect(folder);
    if (client)
        return std::move(*client);
    const auto status = run::currentStatus(folder, realtimeNs());
    const bool takesCommands = status && status->live() && !status->socket.empty();
    return tl::unexpected(failWith(takesCommands ? kJobFailed : kWrongInput, client.error().text));
}

int controlCommand(const std::string &name, RequestKind kind, Format format)
{
    const auto folder = run::findRun(name, runsDirectory());
    if (!folder)
        return failWith(kWrongInput, folder.error().text);
    auto client = connectTo(*folder);
    if (!client)
        return client.error();
    const auto result = client->request(kind, kPatience);
    if (!result)
        return failWith(kJobFailed, result.error().text);
    Output out(STDOUT_FILENO);
    if (kind == RequestKind::Stop || kind == RequestKind::StopNow) {
        const auto status = run::statusFromJson(result->dump());
        if (status && status->state == RunState::Failed)
            return failWith(kJobFailed, failureText(*folder, *status));
    }
    out.result(format == Format::Json ? run::dump(*result) : describeResult(kind, *folder, *result));
    return kDone;
}

} // namespace shardscope::cli
