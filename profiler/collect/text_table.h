// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>

namespace shardscope::collect {

/// Texts that repeat, as numbers. Looking up one that is known takes no lock, so that a span costs no allocation and no
/// wait; a new one takes a mutex. Grows only.
class TextTable
{
public:
    static constexpr uint32_t kSlots = 4096;
    /// The number of texts that fit; what comes on top is number 0, kOverflow.
    static constexpr uint32_t kMaximum = kSlots / 2;
    static constexpr std::string_view kOverflow = "(other)";

    TextTable();
    uint32_t number(std::string_view text);
    /// The text of a number that number() returned. Stays valid as long as the table.
    std::string_view text(uint32_t number) const;

private:
    struct Entry
    {
        uint64_t hash;
        uint32_t number;
        std::string text;
    };
    uint32_t insert(std::string_view text, uint64_t hash);

    std::array<std::atomic<const Entry *>, kSlots> m_slots{};
    std::array<std::atomic<const Entry *>, kMaximum> m_byNumber{};
    std::mutex m_mutex;
    std::deque<Entry> m_entries;
};

} // namespace shardscope::collect
