// SPDX-License-Identifier: Apache-2.0
// shardscope-worker: one rank of a training run.
#include "app/worker/worker.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <spdlog/spdlog.h>

namespace {

using namespace shardscope;
using namespace shardscope::worker;

constexpr int kFlushPatienceMs = 2000;

/// The supervisor ignores what runRank() has told it before.
int fail(control::RankChannel *channel, const Failure &failure)
{
    std::fflush(stdout);
    std::fprintf(stderr, "shardscope-worker: %s\n", failure.text.c_str());
    if (channel) {
        channel->send(failureMessage(failure));
        channel->flush(kFlushPatienceMs);
    }
    return failure.exitCode;
}

/// Nothing more to tear down: the recording is closed and the message is sent. Threads of LibTorch that wait for a rank
/// that is gone would hold up an ordinary exit, and destructors of libraries' globals can only do harm.
[[noreturn]] void endNow(int exitCode)
{
    std::fflush(nullptr);
    std::_Exit(exitCode);
}

} // namespace

int main(int argc, char **argv)
{
    const auto parsed = parseArguments(argc, argv);
    if (!parsed)
        return fail(nullptr, {parsed.error().text, kExitMisused});
    if (const auto *information = std::get_if<Information>(&*parsed)) {
        std::fputs(information->text.c_str(), stdout);
        return kExitDone;
    }
    spdlog::set_pattern("%H:%M:%S %^%l%$ %v");
    spdlog::flush_on(spdlog::level::info);
    const auto environment = readRankEnvironment();
    if (!environment)
        return fail(nullptr, {environment.error().text, kExitMisused});
    // Before any thread: they inherit the blocked signals. A supervised rank ignores the keyboard; its supervisor
    // decides.
    std::optional<SignalWatch> signals;
    if (environment->supervised)
        std::signal(SIGINT, SIG_IGN);
    else
        signals.emplace();
    const auto channel = control::RankChannel::fromEnvironment();
    tl::expected<int, Failure> outcome;
    try {
        outcome = runRank(std::get<Arguments>(*parsed), *environment, *channel, signals ? &*signals : nullptr);
    } catch (const std::exception &error) {
        outcome = tl::unexpected(Failure{error.what(), kExitFailed});
    }
    if (!outcome)
        endNow(fail(channel.get(), outcome.error()));
    channel->flush(kFlushPatienceMs);
    endNow(*outcome);
}
