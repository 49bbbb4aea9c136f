// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/control/line_splitter.h"
#include "core/control/protocol.h"
#include "core/run/run_folder.h"

#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>

namespace shardscope::control {

/// A blocking client of a run's control socket (a window uses it from a thread of its own).
class ControlClient
{
public:
    static Result<ControlClient> connect(const std::filesystem::path &socket);
    /// Connects to the socket that state.json names. The error says what state the run is in.
    static Result<ControlClient> connect(const run::RunFolder &folder);
    ~ControlClient();
    ControlClient(ControlClient &&other) noexcept;
    ControlClient &operator=(ControlClient &&other) noexcept;
    ControlClient(const ControlClient &) = delete;
    ControlClient &operator=(const ControlClient &) = delete;

    /// Why a request was not carried out.
    struct Refusal : Error
    {
        Refusal(Error why, bool refused = false, bool forcible = false)
            : Error(std::move(why))
            , refused(refused)
            , forcible(forcible)
        {
        }
        bool refused;  ///< what was asked for can't be, and nothing was done
        bool forcible; ///< refused for the memory alone: the same with force is carried out
    };
    /// Sends and waits for the reply. Events that come meanwhile are kept for nextEvent(). A reply that is not ok is an
    /// error with its text, and so is a supervisor that ends without one.
    Result<nlohmann::json> request(RequestKind kind, std::chrono::milliseconds patience);
    /// The same of any request; its id is filled in.
    tl::expected<nlohmann::json, Refusal> send(Request request, std::chrono::milliseconds patience);
    /// The next event; nothing after `patience`; an error where the connection is closed.
    Result<std::optional<Event>> nextEvent(std::chrono::milliseconds patience);
    /// For poll(): readable when something came.
    int fd() const { return m_fd; }

private:
    explicit ControlClient(int fd)
        : m_fd(fd)
    {
    }
    /// True where something was read before the deadline; an error at the end of the stream.
    Result<bool> receive(std::chrono::steady_clock::time_point deadline);

    int m_fd = -1;
    int64_t m_lastId = 0;
    LineSplitter m_lines;
    std::deque<Reply> m_replies;
    std::deque<Event> m_events;
};

} // namespace shardscope::control
