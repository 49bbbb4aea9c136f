// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/launch/file_descriptor.h"

#include <QObject>
#include <QSocketNotifier>
#include <memory>

namespace shardscope::launch {

/// Makes signals events of the Qt loop: SIGINT and SIGTERM are told, SIGHUP and SIGPIPE are ignored (a terminal that is
/// closed ends no run). To be made before other threads are started: they inherit the blocked signals.
class SignalWatcher : public QObject
{
    Q_OBJECT
public:
    explicit SignalWatcher(QObject *parent = nullptr);

    /// From here on a signal waits for a watcher to be made, which tells it: what is begun in between is not left half
    /// made. Needs no Qt.
    static void hold();

Q_SIGNALS:
    void received(int signal);

private:
    void read();
    FileDescriptor m_fd;
    std::unique_ptr<QSocketNotifier> m_readable;
};

} // namespace shardscope::launch
