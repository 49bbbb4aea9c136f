// SPDX-License-Identifier: Apache-2.0
#include "core/control/control_client.h"

#include "core/base/clock.h"
#include "core/run/run_status.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace shardscope::control {

using Clock = std::chrono::steady_clock;

Result<ControlClient> ControlClient::connect(const std::filesystem::path &socket)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (socket.native().size() >= sizeof address.sun_path)
        return fail("The socket path {} is too long.", socket.string());
    std::memcpy(address.sun_path, socket.c_str(), socket.native().size());
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail("Can't make a socket: {}.", std::strerror(errno));
    ControlClient client(fd);
    if (::connect(fd, reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0)
        return fail("Can't reach the run's supervisor at {}: {}.", socket.string(), std::strerror(errno));
    return client;
}

Result<ControlClient> ControlClient::connect(const run::RunFolder &folder)
{
    const auto status = run::currentStatus(folder, realtimeNs());
    if (!status)
        return tl::unexpected(status.error());
    if (status->state == RunState::Lost)
        return fail("The supervisor of {} is gone: the run is lost. Go on from its newest checkpoint with: "
                    "shardscope-cli run --resume \"{}\".",
                    folder.name(), folder.root().string());
    if (!status->live())
        return fail("The run {} has ended already ({}).", folder.name(), run::stateWord(*status));
    if (status->socket.empty())
        return fail("The run {} has no supervisor to talk to: it was started by another launcher, which controls it.",
                    folder.name());
    return connect(std::filesystem::path(status->socket));
}

ControlClient::~ControlClient()
{
    if (m_fd >= 0)
        ::close(m_fd);
}

ControlClient::ControlClient(ControlClient &&other) noexcept
    : m_fd(std::exchange(other.m_fd, -1))
    , m_lastId(other.m_lastId)
    , m_lines(std::move(other.m_lines))
    , m_replies(std::move(other.m_replies))
    , m_events(std::move(other.m_events))
{
}

ControlClient &ControlClient::operator=(ControlClient &&other) noexcept
{
    std::swap(m_fd, other.m_fd);
    m_lastId = other.m_lastId;
    m_lines = std::move(other.m_lines);
    m_replies = std::move(other.m_replies);
    m_events = std::move(other.m_events);
    return *this;
}

Result<bool> ControlClient::receive(Clock::time_point deadline)
{
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd waiting{m_fd, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::clamp<int64_t>(left.count(), 0, 3'600'000)));
    if (ready == 0 || (ready < 0 && errno == EINTR))
        return false;
    char bytes[16384];
    const ssize_t got = ready < 0 ? -1 : ::read(m_fd, bytes, sizeof bytes);
    if (got < 0)
        return fail("The connection to the run's supervisor broke: {}.", std::strerror(errno));
    if (got == 0)
        return fail("The run's supervisor has ended.");
    for (const std::string &line : m_lines.add({bytes, static_cast<size_t>(got)})) {
        const auto incoming = incomingFromLine(line);
        if (!incoming)
            return tl::unexpected(incoming.error());
        if (incoming->reply)
            m_replies.push_back(*incoming->reply);
        if (incoming->event)
            m_events.push_back(*incoming->event);
    }
    return true;
}

Result<nlohmann::json> ControlClient::request(RequestKind kind, std::chrono::milliseconds patience)
{
    return send({0, kind}, patience).map_error([](const Refusal &refusal) -> Error { return refusal; });
}

tl::expected<nlohmann::json, ControlClient::Refusal> ControlClient::send(Request request,
                                                                         std::chrono::milliseconds patience)
{
    const auto failed = [](std::string text) { return tl::unexpected(Refusal({std::move(text)})); };
    request.id = ++m_lastId;
    const std::string line = toLine(request) + "\n";
    if (::send(m_fd, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
        return failed("The run's supervisor has ended.");
    const auto deadline = Clock::now() + patience;
    for (;;) {
        const auto reply =
            std::find_if(m_replies.begin(), m_replies.end(), [&](const Reply &r) { return r.id == request.id; });
        if (reply != m_replies.end()) {
            const Reply found = *reply;
            m_replies.erase(reply);
            if (!found.ok)
                return tl::unexpected(Refusal({found.error}, found.refused, found.forcible));
            return found.result;
        }
        if (Clock::now() >= deadline)
            return failed(fmt::format("The run did not answer within {} s.", patience.count() / 1000));
        if (const auto received = receive(deadline); !received)
            return failed(received.error().text);
    }
}

Result<std::optional<Event>> ControlClient::nextEvent(std::chrono::milliseconds patience)
{
    const auto deadline = Clock::now() + patience;
    while (m_events.empty()) {
        const auto received = receive(deadline);
        if (!received)
            return tl::unexpected(received.error());
        if (m_events.empty() && (!*received || Clock::now() >= deadline))
            return std::nullopt;
    }
    Event event = std::move(m_events.front());
    m_events.pop_front();
    return event;
}

} // namespace shardscope::control
