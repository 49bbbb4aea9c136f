// SPDX-License-Identifier: Apache-2.0
#include "app/worker/command_sources.h"

namespace shardscope::worker {

train::CommandSet SupervisorCommands::poll()
{
    train::CommandSet commands;
    const auto command = m_channel.poll();
    if (!command)
        return commands;
    switch (*command) {
    case control::Command::Pause:
        commands.pause = true;
        break;
    case control::Command::Checkpoint:
        commands.checkpoint = true;
        break;
    case control::Command::Stop:
        commands.stop = true;
        break;
    case control::Command::Unpause: // it runs already
        break;
    }
    return commands;
}

train::CommandSet SignalCommands::poll()
{
    train::CommandSet commands;
    commands.stop = m_watch.stopAsked();
    return commands;
}

} // namespace shardscope::worker
