// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "core/control/line_splitter.h"
#include "core/control/protocol.h"

#include <QLocalServer>
#include <QLocalSocket>
#include <QObject>
#include <filesystem>
#include <map>
#include <set>

namespace shardscope::launch {

/// The run's control socket. Clients come and go; what they ask is handed on, and answered by reply().
class ControlServer : public QObject
{
    Q_OBJECT
public:
    using ClientId = int64_t;

    explicit ControlServer(QObject *parent);
    ~ControlServer() override;

    /// Again at another path, or the same: clients that are connected stay.
    Result<> listen(const std::filesystem::path &path);
    /// False before listen(), and where somebody has removed the socket's file since.
    bool isReachable() const;
    /// Nothing happens where the client has gone.
    void reply(ClientId client, const control::Reply &reply);
    void subscribe(ClientId client);
    /// To all subscribers. A client that doesn't read is let go once kMostUnreadBytes wait for it.
    void publish(const control::Event &event);
    bool hasSubscribers() const { return !m_subscribers.empty(); }
    /// Removes the socket's file, too. Clients that are connected stay.
    void stopListening();
    /// Stops listening, and gives clients a moment to get their last lines.
    void close();

    static constexpr qint64 kMostUnreadBytes = 4 << 20;

Q_SIGNALS:
    void requested(qint64 client, const shardscope::control::Request &request);

private:
    struct Client
    {
        QLocalSocket *socket = nullptr;
        control::LineSplitter lines;
    };
    void accept();
    void read(ClientId id);
    void write(ClientId id, const std::string &line);
    void remove(ClientId id);

    QLocalServer m_server;
    std::filesystem::path m_path;
    ClientId m_lastId = 0;
    std::map<ClientId, Client> m_clients;
    std::set<ClientId> m_subscribers;
};

} // namespace shardscope::launch
