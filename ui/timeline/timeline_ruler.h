// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/timeline_state.h"

#include <QWidget>

namespace shardscope::ui::timeline {

/// Steps above, time below. A click on a step selects it.
class TimelineRuler : public QWidget
{
    Q_OBJECT
public:
    static constexpr int kHeightPx = 42;

    explicit TimelineRuler(TimelineState &state, QWidget *parent = nullptr);
    QSize sizeHint() const override { return {400, kHeightPx}; }

Q_SIGNALS:
    void stepClicked(qint64 number, shardscope::ui::TimeRange range);

protected:
    void paintEvent(QPaintEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void changeEvent(QEvent *event) override;

private:
    struct Step
    {
        int64_t number;
        TimeRange range;
    };
    std::vector<Step> visibleSteps() const;
    void paintSteps(QPainter &painter) const;
    void paintTimes(QPainter &painter) const;
    void paintMarks(QPainter &painter) const;
    double xOf(int64_t timeNs) const;

    TimelineState &m_state;
};

} // namespace shardscope::ui::timeline
