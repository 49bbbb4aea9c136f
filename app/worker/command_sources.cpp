// SPDX-License-Identifier: Apache-2.0
#include "app/worker/command_sources.h"

namespace shardscope::worker {

train::CommandSet SupervisorCommands::poll()
{
    train::CommandSet commands;
    const auto order = m_channel.poll();
    if (!order)
        return commands;
    switch (order->command) {
    case control::Command::Pause:
        commands.pause = true;
        break;
    case control::Command::Checkpoint:
        commands.checkpoint = true;
        break;
    case control::Command::Stop:
        commands.stop = true;
        break;
    case control::Command::Set:
        commands.change = order->change;
        break;
    case control::Command::Unpause: // it runs already
        break;
    }
    return commands;
}

Result<control::ConfigurationChange> SupervisorCommands::change(int64_t number)
{
    if (auto change = m_channel.waitForChange(number))
        return std::move(*change);
    return fail("The supervisor is gone, and change {} of the configuration with it.", number);
}

train::CommandSet SignalCommands::poll()
{
    train::CommandSet commands;
    commands.stop = m_watch.stopAsked();
    return commands;
}

Result<control::ConfigurationChange> SignalCommands::change(int64_t number)
{
    return fail("Change {} of the configuration comes from no supervisor.", number);
}

} // namespace shardscope::worker
