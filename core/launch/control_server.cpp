// SPDX-License-Identifier: Apache-2.0
#include "core/launch/control_server.h"

#include "core/launch/sockets.h"

#include <unistd.h>

namespace shardscope::launch {

using control::Event;
using control::Reply;

ControlServer::ControlServer(QObject *parent)
    : QObject(parent)
{
    connect(&m_server, &QLocalServer::newConnection, this, &ControlServer::accept);
}

ControlServer::~ControlServer()
{
    close();
}

Result<> ControlServer::listen(const std::filesystem::path &path)
{
    m_server.close();
    m_path.clear();
    auto fd = listenAtPath(path);
    if (!fd)
        return tl::unexpected(fd.error());
    if (!m_server.listen(fd->get()))
        return fail("Can't listen at {}: {}.", path.string(), m_server.errorString().toStdString());
    fd->release();
    m_path = path;
    return {};
}

bool ControlServer::isReachable() const
{
    std::error_code gone;
    return !m_path.empty() && std::filesystem::is_socket(m_path, gone);
}

void ControlServer::stopListening()
{
    if (!m_path.empty())
        ::unlink(m_path.c_str());
    m_path.clear();
    m_server.close();
}

void ControlServer::close()
{
    stopListening();
    for (auto &[id, client] : m_clients) {
        client.socket->disconnect(this);
        client.socket->flush();
        if (client.socket->bytesToWrite() > 0)
            client.socket->waitForBytesWritten(200);
        client.socket->disconnectFromServer();
    }
    m_clients.clear();
    m_subscribers.clear();
}

void ControlServer::accept()
{
    while (QLocalSocket *socket = m_server.nextPendingConnection()) {
        const ClientId id = ++m_lastId;
        m_clients[id].socket = socket;
        connect(socket, &QLocalSocket::readyRead, this, [this, id] { read(id); });
        connect(socket, &QLocalSocket::disconnected, this, [this, id] { remove(id); });
        read(id);
    }
}

void ControlServer::read(ClientId id)
{
    const auto found = m_clients.find(id);
    if (found == m_clients.end())
        return;
    const QByteArray bytes = found->second.socket->readAll();
    for (const std::string &line : found->second.lines.add({bytes.constData(), static_cast<size_t>(bytes.size())})) {
        const auto request = control::requestFromLine(line);
        if (request)
            Q_EMIT requested(id, *request);
        else
            reply(id, Reply{request.error().id, false, request.error().text});
    }
}

void ControlServer::write(ClientId id, const std::string &line)
{
    const auto found = m_clients.find(id);
    if (found == m_clients.end())
        return;
    QLocalSocket *socket = found->second.socket;
    if (socket->bytesToWrite() > kMostUnreadBytes) {
        // Only marks it: the client is removed by its disconnected(), not while somebody walks over the clients.
        QMetaObject::invokeMethod(socket, &QLocalSocket::abort, Qt::QueuedConnection);
        return;
    }
    socket->write(line.data(), static_cast<qint64>(line.size()));
    socket->write("\n", 1);
}

void ControlServer::reply(ClientId client, const Reply &reply)
{
    write(client, toLine(reply));
}

void ControlServer::subscribe(ClientId client)
{
    m_subscribers.insert(client);
}

void ControlServer::publish(const Event &event)
{
    if (m_subscribers.empty())
        return;
    const std::string line = toLine(event);
    for (ClientId id : m_subscribers)
        write(id, line);
}

void ControlServer::remove(ClientId id)
{
    m_subscribers.erase(id);
    const auto found = m_clients.find(id);
    if (found == m_clients.end())
        return;
    found->second.socket->deleteLater();
    m_clients.erase(found);
}

} // namespace shardscope::launch
