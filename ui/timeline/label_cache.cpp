// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/label_cache.h"

namespace shardscope::ui::timeline {

LabelCache::LabelCache(const QFont &font)
    : m_font(font)
    , m_metrics(font)
{
}

const QStaticText *LabelCache::insert(const Key &key, const QString &text, double roomPx)
{
    if (m_entries.size() >= kMostEntries)
        clear();
    Entry entry;
    entry.fits = text.size() >= 2 && m_metrics.horizontalAdvance(text) <= roomPx;
    entry.text.setTextFormat(Qt::PlainText);
    entry.text.setPerformanceHint(QStaticText::AggressiveCaching);
    entry.text.setText(text);
    entry.text.prepare({}, m_font);
    const auto inserted = m_entries.insert(key, std::move(entry));
    return inserted->fits ? &inserted->text : nullptr;
}

void LabelCache::clear()
{
    m_entries.clear();
    m_fullWidths.clear();
}

} // namespace shardscope::ui::timeline
