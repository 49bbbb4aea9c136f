// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/timeline_state.h"

#include <QToolButton>
#include <QWidget>
#include <array>

namespace shardscope::ui::timeline {

/// What the colours mean. A category's button hides and shows its spans; the phases' only explain.
class Legend : public QWidget
{
    Q_OBJECT
public:
    explicit Legend(TimelineState &state, QWidget *parent = nullptr);

protected:
    void changeEvent(QEvent *event) override;

private:
    void updateColors();

    TimelineState &m_state;
    std::array<QToolButton *, kCategories> m_buttons{};
    std::vector<std::pair<class QLabel *, Phase>> m_phases;
};

} // namespace shardscope::ui::timeline
