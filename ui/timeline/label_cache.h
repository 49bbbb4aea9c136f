// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFont>
#include <QFontMetricsF>
#include <QHash>
#include <QStaticText>

namespace shardscope::ui::timeline {

/// Laid-out texts by name, unit and room. Laying out is what makes text dear; names repeat.
class LabelCache
{
public:
    explicit LabelCache(const QFont &font);

    const QFont &font() const { return m_font; }
    /// The text for (name, unit) that fits into roomPx: the whole one, else the brief one, else what there is of it
    /// elided: the brief one where it has a number in its middle, since "b….3" still tells the block.
    /// makeText(bool brief) is asked where it is not known yet. Null where not even two letters fit.
    template <typename MakeText>
    const QStaticText *label(int32_t name, int32_t unit, double roomPx, MakeText &&makeText);
    qreal ascent() const { return m_metrics.ascent(); }
    qreal lineHeight() const { return m_metrics.height(); }
    void clear();

private:
    /// Rooms are told apart by this much, so that a zoom does not lay out every label anew.
    static constexpr int kRoomStepPx = 8;
    static constexpr qsizetype kMostEntries = 20'000;

    struct Entry
    {
        QStaticText text;
        bool fits = false;
    };
    struct Key
    {
        int32_t name, unit, room;
        bool operator==(const Key &) const = default;
        friend size_t qHash(const Key &key, size_t seed) { return qHashMulti(seed, key.name, key.unit, key.room); }
    };
    const QStaticText *insert(const Key &key, const QString &text, double roomPx);

    QFont m_font;
    QFontMetricsF m_metrics;
    QHash<Key, Entry> m_entries;
    QHash<std::pair<int32_t, int32_t>, qreal> m_fullWidths;
};

template <typename MakeText>
const QStaticText *LabelCache::label(int32_t name, int32_t unit, double roomPx, MakeText &&makeText)
{
    int room = static_cast<int>(roomPx) / kRoomStepPx;
    const auto full = m_fullWidths.constFind({name, unit});
    if (full != m_fullWidths.constEnd() && *full <= roomPx)
        room = -1; // one entry for all rooms that the whole text fits into
    const Key key{name, unit, room};
    const auto known = m_entries.constFind(key);
    if (known != m_entries.constEnd())
        return known->fits ? &known->text : nullptr;
    const QString text = makeText(false);
    m_fullWidths.insert({name, unit}, m_metrics.horizontalAdvance(text));
    if (m_fullWidths.value({name, unit}) <= roomPx)
        return insert({name, unit, -1}, text, roomPx);
    const QString brief = makeText(true);
    if (brief.isEmpty())
        return insert(key, m_metrics.elidedText(text, Qt::ElideRight, room * kRoomStepPx), roomPx);
    const bool numbered = brief.contains(u'.') && brief.back().isDigit();
    const Qt::TextElideMode mode = numbered ? Qt::ElideMiddle : Qt::ElideRight;
    return insert(key, m_metrics.elidedText(brief, mode, room * kRoomStepPx), roomPx);
}

} // namespace shardscope::ui::timeline
