// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace shardscope::cli {

enum class Format { Text, Json };

/// Standard output and error of a command that must not stop when nobody reads: a closed terminal is ignored, and a
/// line that a stopped reader has no room for is left out (line()), or waited for a second (result()).
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
    /// What the command was called for: all of it, however long, as long as somebody reads.
    void result(std::string_view text);

private:
    bool roomWithin(int timeoutMs) const;
    void write(std::string text, int timeoutMs);

    int m_fd;
    bool m_terminal;
    bool m_progressShown = false;
};

/// Columns that a UTF-8 text takes, as far as one code point is one column; cut to at most `columns`.
std::string cutToWidth(std::string_view text, int columns);

} // namespace shardscope::cli
