// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/worker/signal_watch.h"
#include "core/train/command_source.h"

namespace shardscope::worker {

/// Commands of a supervisor. While the ranks run it tells rank 0 alone, and the others' channels are silent.
class SupervisorCommands final : public train::CommandSource
{
public:
    explicit SupervisorCommands(control::RankChannel &channel)
        : m_channel(channel)
    {
    }
    train::CommandSet poll() override;
    control::Order waitWhilePaused(int64_t step) override { return m_channel.waitWhilePaused(step); }
    Result<control::ConfigurationChange> change(int64_t number) override;

private:
    control::RankChannel &m_channel;
};

/// Signals, where there is no supervisor. Any rank's SIGTERM stops all: torchrun sends it to those of one machine.
class SignalCommands final : public train::CommandSource
{
public:
    explicit SignalCommands(const SignalWatch &watch)
        : m_watch(watch)
    {
    }
    train::CommandSet poll() override;
    /// Nobody can pause such a run.
    control::Order waitWhilePaused(int64_t) override { return control::Command::Unpause; }
    /// Nor change its configuration.
    Result<control::ConfigurationChange> change(int64_t number) override;

private:
    const SignalWatch &m_watch;
};

} // namespace shardscope::worker
