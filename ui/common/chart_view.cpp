// SPDX-License-Identifier: GPL-3.0-or-later
// The parts of Chart that show and export: theme, hover readout, menu, copies.
#include "ui/common/chart.h"
#include "ui/common/chart_legend.h"
#include "ui/common/chart_markers.h"
#include "ui/common/chart_table.h"
#include "ui/common/chart_ticker.h"
#include "ui/common/colors.h"
#include "ui/common/text_dialog.h"

#include "ui/common/custom_plot.h"
#include <QApplication>
#include <QClipboard>
#include <QEvent>
#include <QLabel>
#include <QMenu>
#include <algorithm>
#include <cmath>

namespace shardscope::ui {

void Chart::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange)
        applyTheme(); // QCustomPlot knows nothing of palettes
}

void Chart::applyTheme()
{
    const Colors &colors = Colors::of(palette());
    m_plot->setBackground(colors.card);
    for (QCPAxis *axis : {m_plot->xAxis, m_plot->yAxis, m_plot->yAxis2}) {
        axis->setBasePen(QPen(colors.border));
        axis->setTickPen(QPen(colors.border));
        axis->setLabelColor(colors.muted);
        axis->setTickLabelColor(colors.muted);
        axis->setTickLabelFont(font());
        axis->setLabelFont(font());
        axis->setTickLengthOut(3);
        axis->setTickLengthIn(0);
        axis->grid()->setPen(QPen(colors.grid));
        axis->grid()->setZeroLinePen(QPen(colors.grid));
    }
    m_plot->xAxis->grid()->setVisible(false);
    std::vector<QColor> swatches;
    for (size_t i = 0; i < m_series.size(); ++i) {
        const QColor color = m_series[i].color(colors);
        swatches.push_back(color);
        if (m_series[i].stacked) {
            m_graphs[i]->setBrush(color);
        } else {
            m_graphs[i]->setPen(QPen(color, 1.6, m_series[i].dashed ? Qt::DashLine : Qt::SolidLine));
            if (m_series[i].points) {
                m_graphs[i]->setLineStyle(QCPGraph::lsNone);
                m_graphs[i]->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDisc, color, color, 6));
            }
        }
    }
    m_legend->setColors(swatches);
    m_brushItem->setPen(QPen(colors.accent));
    m_brushItem->setBrush(colors.selection);
    m_cursorItem->setPen(QPen(colors.muted, 1, Qt::DotLine));
    m_markers->setLooks(colors, font());
    m_drawnFor.reset(); // pens are of the theme too
    m_plot->replot(QCustomPlot::rpQueuedReplot);
}

bool Chart::any(bool ChartSeries::*kind) const
{
    return std::any_of(m_series.begin(), m_series.end(), [kind](const ChartSeries &one) { return one.*kind; });
}

std::optional<size_t> Chart::indexAt(double x) const
{
    if (m_x.empty())
        return std::nullopt;
    if (any(&ChartSeries::lasting))
        return std::min(static_cast<size_t>(std::lower_bound(m_x.begin(), m_x.end(), x) - m_x.begin()), m_x.size() - 1);
    const auto after = std::upper_bound(m_x.begin(), m_x.end(), x);
    if (after == m_x.begin())
        return 0;
    const size_t before = static_cast<size_t>(after - m_x.begin()) - 1;
    if (any(&ChartSeries::step) || after == m_x.end())
        return before;
    return x - m_x[before] <= *after - x ? before : before + 1;
}

QString Chart::readout(double x) const
{
    const std::optional<size_t> index = indexAt(x);
    if (!index)
        return {};
    QString rows;
    const auto addRow = [&](const QString &name, const QString &value) {
        rows += QStringLiteral("<tr><td>%1</td><td align='right'>&nbsp;&nbsp;%2</td></tr>")
                    .arg(name.toHtmlEscaped(), value.toHtmlEscaped());
    };
    if (*index < m_labels.size())
        addRow(m_labels[*index], {});
    addRow(m_xTitle, axisText(m_xUnit, m_x[*index]));
    for (const QString &name : m_markers->near(x))
        addRow(name, {});
    const Colors &colors = Colors::of(palette());
    for (size_t i = m_series.size(); i-- > 0;) { // the uppermost layer first, as in the picture
        if (!shown(i) || std::isnan(m_columns[i][*index]))
            continue;
        rows +=
            QStringLiteral("<tr><td><span style='color:%1'>■</span> %2</td><td align='right'>&nbsp;&nbsp;%3</td></tr>")
                .arg(m_series[i].color(colors).name(), m_series[i].name.toHtmlEscaped(),
                     axisText(unitOf(i), m_columns[i][*index]).toHtmlEscaped());
    }
    return QStringLiteral("<table cellspacing='0'>%1</table>").arg(rows);
}

void Chart::hover(double x, const QPointF &position)
{
    const std::optional<size_t> index = indexAt(x);
    if (!index || !m_plot->axisRect()->rect().contains(position.toPoint())) {
        m_readout->hide();
        return;
    }
    m_readout->setText(readout(x));
    m_readout->adjustSize();
    const QSize size = m_readout->size();
    const int right = static_cast<int>(position.x()) + 16;
    const int left = static_cast<int>(position.x()) - 16 - size.width();
    const int x0 = right + size.width() <= m_plot->width() || left < 0 ? right : left;
    const int y0 = std::clamp(static_cast<int>(position.y()) - size.height() / 2, 0,
                              std::max(0, m_plot->height() - size.height()));
    m_readout->move(x0, y0);
    m_readout->show();
    m_readout->raise();
    setCursor(m_x[*index]);
    Q_EMIT hovered(m_x[*index]);
}

void Chart::buildMenu(QMenu *menu)
{
    menu->clear();
    menu->addAction(tr("Reset zoom"), this, &Chart::resetZoom)->setShortcut(Qt::Key_Home);
    menu->addSeparator();
    menu->addAction(tr("Copy as image"), this, &Chart::copyImage);
    menu->addAction(tr("Copy as CSV"), this, &Chart::copyCsv);
    menu->addAction(tr("Show as table…"), this, &Chart::showTable);
    if (!m_sql.isEmpty())
        menu->addAction(tr("Show the query…"), this, &Chart::showSql);
}

static std::vector<ChartTableModel::Column>
columnsOf(const QString &xTitle, ChartUnit xUnit, const std::vector<double> &x, const std::vector<ChartSeries> &series,
          const std::vector<std::vector<double>> &values, ChartUnit first, ChartUnit second)
{
    std::vector<ChartTableModel::Column> columns = {{xTitle, xUnit, x}};
    for (size_t i = 0; i < series.size(); ++i)
        columns.push_back({series[i].name, series[i].secondAxis ? second : first, values[i]});
    return columns;
}

QString Chart::csv() const
{
    return ChartTableModel(columnsOf(m_xTitle, m_xUnit, m_x, m_series, m_columns, m_yUnit, m_y2Unit)).csv();
}

QImage Chart::image() const
{
    return m_plot->toPixmap(0, 0, 2).toImage();
}

void Chart::copyImage()
{
    QApplication::clipboard()->setImage(image());
}

void Chart::copyCsv()
{
    QApplication::clipboard()->setText(csv());
}

void Chart::showTable()
{
    auto *dialog = new ChartTableDialog(
        m_title, columnsOf(m_xTitle, m_xUnit, m_x, m_series, m_columns, m_yUnit, m_y2Unit), window());
    dialog->show();
}

void Chart::showSql()
{
    auto *dialog = new TextDialog(tr("Query behind “%1”").arg(m_title), m_sql, window());
    dialog->show();
}

} // namespace shardscope::ui
