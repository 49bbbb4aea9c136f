// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/common/chart_markers.h"

#include "ui/common/colors.h"
#include "ui/common/custom_plot.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace shardscope::ui {

static constexpr double kGapPx = 4;           ///< between two names, and from a name to a line beside it
static constexpr double kNearPx = 4;          ///< a marker that the mouse is on
static constexpr double kShareOfHeight = 0.6; ///< of the plot that rows of names may take
static constexpr int kFewAlike = 4;           ///< so many markers of one name in view are all worth a row

/// Above the graphs, whichever were made later.
static const QString kLayer = QStringLiteral("markers");

ChartMarkers::ChartMarkers(QCustomPlot *plot)
    : m_plot(plot)
{
    m_plot->addLayer(kLayer, m_plot->layer(QStringLiteral("main")), QCustomPlot::limAbove);
}

bool ChartMarkers::set(Markers markers)
{
    std::stable_sort(markers.begin(), markers.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    if (markers == m_markers)
        return false;
    m_markers = std::move(markers);
    makeItems();
    return true;
}

void ChartMarkers::makeItems()
{
    for (const Item &item : m_items) {
        m_plot->removeItem(item.line);
        m_plot->removeItem(item.text);
    }
    m_items.clear();
    for (const auto &[x, name] : m_markers) {
        Item item{new QCPItemStraightLine(m_plot), new QCPItemText(m_plot), {}};
        item.line->setLayer(kLayer);
        item.text->setLayer(kLayer);
        item.line->point1->setCoords(x, 0);
        item.line->point2->setCoords(x, 1);
        item.text->position->setType(QCPItemPosition::ptAbsolute);
        item.text->setPositionAlignment(Qt::AlignLeft | Qt::AlignTop);
        item.text->setPadding(QMargins(3, 0, 3, 0));
        item.text->setText(name);
        m_items.push_back(item);
    }
}

void ChartMarkers::setLooks(const Colors &colors, const QFont &font)
{
    QColor behind = colors.card; // a name may stand over the fills of a stack
    behind.setAlpha(225);
    for (const Item &item : m_items) {
        item.line->setPen(QPen(colors.muted, 1, Qt::DashLine));
        item.text->setFont(font);
        item.text->setColor(colors.text);
        item.text->setBrush(behind);
    }
}

/// The uppermost place beside the line at x that no name before it takes; null where there is none. A name among many
/// alike gets only the first row.
QRectF ChartMarkers::freeRect(double x, double width, double height, bool repeated) const
{
    const QRectF area = m_plot->axisRect()->rect();
    const double right = x + 2; // where the name is right of its line
    const double left = right + width <= area.right() ? right : x - 2 - width;
    const double bottom = repeated ? area.top() + height : area.top() + area.height() * kShareOfHeight;
    for (double y = area.top(); y + height <= bottom; y += height + 1) {
        const QRectF rect(left, y, width, height);
        const QRectF wide = rect.adjusted(-kGapPx, 0, kGapPx, 0);
        if (std::none_of(m_items.begin(), m_items.end(), [&](const Item &item) { return item.rect.intersects(wide); }))
            return rect;
    }
    return {};
}

void ChartMarkers::place()
{
    const QCPRange view = m_plot->xAxis->range();
    std::map<QString, int> timesInView;
    for (size_t i = 0; i < m_items.size(); ++i) {
        m_items[i].rect = {};
        timesInView[m_markers[i].second] += view.contains(m_markers[i].first) ? 1 : 0;
    }
    // What happened a few times, as a change of settings, before what comes again and again, as checkpoints.
    for (const bool repeated : {false, true}) {
        for (size_t i = 0; i < m_items.size(); ++i) {
            Item &item = m_items[i];
            const auto &[at, name] = m_markers[i];
            if (!view.contains(at) || repeated != (timesInView[name] > kFewAlike))
                continue;
            const QFontMetricsF metrics(item.text->font());
            const double width = metrics.horizontalAdvance(name) + 7;
            item.rect = freeRect(m_plot->xAxis->coordToPixel(at), width, std::ceil(metrics.height()), repeated);
        }
    }
    for (Item &item : m_items) {
        item.text->setVisible(!item.rect.isNull());
        item.text->position->setPixelPosition(item.rect.topLeft());
    }
}

std::vector<QString> ChartMarkers::near(double x) const
{
    std::vector<QString> names;
    const double pixel = m_plot->xAxis->coordToPixel(x);
    for (const auto &[at, name] : m_markers) {
        if (std::abs(m_plot->xAxis->coordToPixel(at) - pixel) <= kNearPx)
            names.push_back(name);
    }
    return names;
}

std::vector<QRectF> ChartMarkers::nameRects() const
{
    std::vector<QRectF> rects;
    for (const Item &item : m_items) {
        if (!item.rect.isNull())
            rects.push_back(item.rect);
    }
    return rects;
}

} // namespace shardscope::ui
