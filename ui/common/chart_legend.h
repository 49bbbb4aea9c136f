// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QString>
#include <QWidget>
#include <vector>

class QToolButton;

namespace shardscope::ui {

/// The names of a chart's series with their colours. A button each: pressing one hides its series, so that the legend
/// works by mouse, by keyboard and for screen readers.
class ChartLegend : public QWidget
{
    Q_OBJECT
public:
    explicit ChartLegend(QWidget *parent = nullptr);

    void setNames(const std::vector<QString> &names);
    void setColors(const std::vector<QColor> &colors);
    bool isShown(size_t index) const;

Q_SIGNALS:
    void toggled(int index, bool shown);

private:
    std::vector<QToolButton *> m_buttons;
};

} // namespace shardscope::ui
