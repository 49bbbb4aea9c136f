// SPDX-License-Identifier: Apache-2.0
#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "app/cli/prepared_run.h"
#include "core/run/json_access.h"

#include <chrono>
#include <unistd.h>

namespace shardscope::cli {

using control::RequestKind;
using nlohmann::json;

/// Two steps, and whatever waits in line before.
static constexpr std::chrono::hours kPatience{1};

static std::string describeResult(const SetOptions &options, const json &result)
{
    std::optional<int64_t> step;
    std::string text;
    run::take(result, "step", step);
    run::take(result, "text", text);
    if (!step)
        return "Nothing changes: it is so already.";
    return fmt::format("{} step {}: {}", options.undo ? "Undone from" : "From", *step, text);
}

int setCommand(const SetOptions &options)
{
    const bool asks = !options.assignments.empty() || !options.rules.empty();
    if (asks == options.undo)
        return failWith(kWrongInput, options.undo
                                         ? "--undo goes back to what was before: give it nothing to set."
                                         : "Say what to set: KEY=VALUE, --unit 'PATTERN:KEY=VALUE', or --undo.");
    const auto folder = run::findRun(options.run, runsDirectory());
    if (!folder)
        return failWith(kWrongInput, folder.error().text);
    auto client = connectTo(*folder);
    if (!client)
        return client.error();
    const control::Request request{.kind = options.undo ? RequestKind::Undo : RequestKind::Set,
                                   .live = {options.assignments, options.rules, options.force}};
    const auto result = client->send(request, kPatience);
    if (!result)
        return failWith(result.error().refused ? kWrongInput : kJobFailed,
                        result.error().text + (result.error().forcible ? " --force sets it all the same." : ""));
    Output(STDOUT_FILENO)
        .result(options.format == Format::Json ? run::dump(*result) : describeResult(options, *result));
    return kDone;
}

} // namespace shardscope::cli
