// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace shardscope::cli {

enum class Format { Text, Json };

/// Standard output or error. A closed one is ignored. What a run tells while it goes on must not stop it where nobody
/// reads: a line that there is no room for is left out, or cut. What a command was called for waits for its reader.
class Output
{
public:
    explicit Output(int fd);

    bool isTerminal() const { return m_terminal; }
    /// Columns of the terminal; 80 where unknown.
    int width() const;
    /// Replaces the line that the cursor is in, on a terminal. Elsewhere nothing.
    void progress(std::string_view text);
    void line(std::string_view text);
    /// As line(), but waits a second for room: once. Who has not read then is not waited for again until there is room,
    /// so that many events cost the run no more than one does.
    void event(std::string_view text);
    /// What the command was called for: all of it, however long and slowly it is read.
    void result(std::string_view text);

private:
    bool roomWithin(int timeoutMs) const;
    bool write(std::string_view text, int timeoutMs);
    bool writeLine(std::string_view text, int timeoutMs);

    int m_fd;
    bool m_terminal;
    bool m_progressShown = false;
    bool m_cut = false;    ///< the last text went out in part
    bool m_unread = false; ///< the last event found no room in time
};

/// Columns that a UTF-8 text takes, as far as one code point is one column; cut to at most `columns`.
std::string cutToWidth(std::string_view text, int columns);

} // namespace shardscope::cli
