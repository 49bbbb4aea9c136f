// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/lane_accessibility.h"

#include "ui/timeline/lane_canvas.h"

#include <QAccessibleWidget>
#include <QPointer>
#include <map>

namespace shardscope::ui::timeline {

namespace {

/// One row. Rows come and go with folding, so that it is known by its index and says "invalid" beyond the last.
class RowAccessible : public QAccessibleInterface
{
public:
    RowAccessible(LaneCanvas *canvas, TimelineState *state, int index)
        : m_canvas(canvas)
        , m_state(state)
        , m_index(index)
    {
    }

    bool isValid() const override
    {
        return m_canvas && m_state && m_state->snapshot() &&
               m_index < static_cast<int>(m_state->layout().rows().size());
    }
    QObject *object() const override { return nullptr; }
    QWindow *window() const override
    {
        return m_canvas && m_canvas->window() ? m_canvas->window()->windowHandle() : nullptr;
    }
    QAccessibleInterface *parent() const override { return QAccessible::queryAccessibleInterface(m_canvas); }
    QAccessibleInterface *child(int) const override { return nullptr; }
    QAccessibleInterface *childAt(int, int) const override { return nullptr; }
    int childCount() const override { return 0; }
    int indexOfChild(const QAccessibleInterface *) const override { return -1; }
    void setText(QAccessible::Text, const QString &) override {}
    QAccessible::Role role() const override { return QAccessible::ListItem; }

    QString text(QAccessible::Text kind) const override
    {
        if (!isValid() || kind != QAccessible::Name)
            return {};
        const Row &row = m_state->layout().rows()[static_cast<size_t>(m_index)];
        const Snapshot &snapshot = *m_state->snapshot();
        const RankTimeline &rank = snapshot.ranks[row.rank];
        const QString label = QString::fromStdString(labelOf(snapshot, rank));
        if (row.kind == Row::Kind::Rank)
            return row.folded ? LaneCanvas::tr("%1, folded").arg(label) : label;
        const Lane &lane = *rank.lanes[row.lane];
        return LaneCanvas::tr("%1, %2, %3 spans")
            .arg(label, QString::fromStdString(lane.info.name))
            .arg(static_cast<qulonglong>(lane.spanCount()));
    }

    QRect rect() const override
    {
        if (!isValid())
            return {};
        const QRect inView = m_canvas->rowRect(m_state->layout().rows()[static_cast<size_t>(m_index)]);
        return {m_canvas->viewport()->mapToGlobal(inView.topLeft()), inView.size()};
    }

    QAccessible::State state() const override
    {
        QAccessible::State state;
        state.readOnly = true;
        state.invalid = !isValid();
        if (isValid()) {
            const Row &row = m_state->layout().rows()[static_cast<size_t>(m_index)];
            state.collapsed = row.folded;
            state.expanded = row.kind == Row::Kind::Rank && !row.folded;
            state.offscreen = !m_canvas->rowRect(row).intersects(m_canvas->viewport()->rect());
        }
        return state;
    }

private:
    QPointer<LaneCanvas> m_canvas;
    QPointer<TimelineState> m_state;
    int m_index;
};

class CanvasAccessible : public QAccessibleWidget
{
public:
    explicit CanvasAccessible(LaneCanvas *canvas)
        : QAccessibleWidget(canvas, QAccessible::List)
        , m_canvas(canvas)
    {
    }
    ~CanvasAccessible() override
    {
        for (const auto &[index, id] : m_children)
            QAccessible::deleteAccessibleInterface(id);
    }

    int childCount() const override { return static_cast<int>(m_canvas->state().layout().rows().size()); }
    QAccessibleInterface *child(int index) const override
    {
        if (index < 0 || index >= childCount())
            return nullptr;
        auto known = m_children.find(index);
        if (known == m_children.end()) {
            auto *row = new RowAccessible(m_canvas, &m_canvas->state(), index);
            known = m_children.emplace(index, QAccessible::registerAccessibleInterface(row)).first;
        }
        return QAccessible::accessibleInterface(known->second);
    }
    int indexOfChild(const QAccessibleInterface *wanted) const override
    {
        for (const auto &[index, id] : m_children) {
            if (QAccessible::accessibleInterface(id) == wanted)
                return index;
        }
        return -1;
    }
    QAccessibleInterface *childAt(int x, int y) const override
    {
        const QPoint point = m_canvas->viewport()->mapFromGlobal(QPoint(x, y));
        const auto &rows = m_canvas->state().layout().rows();
        for (size_t i = 0; i < rows.size(); ++i) {
            if (m_canvas->rowRect(rows[i]).contains(point))
                return child(static_cast<int>(i));
        }
        return nullptr;
    }

private:
    LaneCanvas *m_canvas;
    mutable std::map<int, QAccessible::Id> m_children;
};

QAccessibleInterface *makeInterface(const QString &className, QObject *object)
{
    auto *canvas = qobject_cast<LaneCanvas *>(object);
    return canvas && className.endsWith(QLatin1String("LaneCanvas")) ? new CanvasAccessible(canvas) : nullptr;
}

} // namespace

void installLaneAccessibility()
{
    QAccessible::removeFactory(makeInterface);
    QAccessible::installFactory(makeInterface);
}

} // namespace shardscope::ui::timeline
