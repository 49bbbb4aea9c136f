// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/text_table.h"

namespace shardscope::collect {

namespace {

/// FNV-1a: names are short, and no more than this is needed to spread them.
uint64_t hashOf(std::string_view text)
{
    uint64_t hash = 1469598103934665603ull;
    for (const char c : text)
        hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    return hash;
}

} // namespace

TextTable::TextTable()
{
    insert(kOverflow, hashOf(kOverflow));
}

uint32_t TextTable::number(std::string_view text)
{
    const uint64_t hash = hashOf(text);
    for (uint32_t i = 0; i < kSlots; ++i) {
        const Entry *entry = m_slots[(hash + i) % kSlots].load(std::memory_order_acquire);
        if (!entry)
            break;
        if (entry->hash == hash && entry->text == text)
            return entry->number;
    }
    return insert(text, hash);
}

uint32_t TextTable::insert(std::string_view text, uint64_t hash)
{
    const std::lock_guard lock(m_mutex);
    uint32_t slot = static_cast<uint32_t>(hash % kSlots);
    // Never full: half of the slots stay empty.
    while (const Entry *entry = m_slots[slot].load(std::memory_order_relaxed)) {
        if (entry->hash == hash && entry->text == text)
            return entry->number;
        slot = (slot + 1) % kSlots;
    }
    const auto number = static_cast<uint32_t>(m_entries.size());
    if (number >= kMaximum)
        return 0;
    const Entry &entry = m_entries.emplace_back(Entry{hash, number, std::string(text)});
    m_byNumber[number].store(&entry, std::memory_order_release);
    m_slots[slot].store(&entry, std::memory_order_release);
    return number;
}

std::string_view TextTable::text(uint32_t number) const
{
    const Entry *entry = number < kMaximum ? m_byNumber[number].load(std::memory_order_acquire) : nullptr;
    return entry ? std::string_view(entry->text) : kOverflow;
}

} // namespace shardscope::collect
