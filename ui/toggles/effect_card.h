// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "profiler/analysis/change_effect.h"
#include "ui/common/page.h"

#include <QFrame>
#include <array>
#include <optional>

class QLabel;
class QToolButton;

namespace shardscope::ui {

/// What the last change did: step time, peak memory and exposed communication before → after, as medians with their
/// quartiles, and whether the difference is more than chance.
class EffectCard : public QFrame
{
    Q_OBJECT
public:
    explicit EffectCard(QWidget *parent = nullptr);

    /// Hides itself where nothing has changed yet.
    void setEffect(const std::optional<analysis::ChangeEffect> &effect);

Q_SIGNALS:
    /// The figures of each step, by the query that gives them.
    void inspect(const shardscope::ui::InspectorContent &content);

private:
    struct Row
    {
        QLabel *name;
        QLabel *before;
        QLabel *after;
        QLabel *spreadBefore;
        QLabel *spreadAfter;
        QLabel *verdict;
    };
    void showRow(Row &row, const analysis::Effect &effect, bool isTime);
    void tellSteps();

    QLabel *m_title;
    QLabel *m_waiting;
    QToolButton *m_steps;
    std::array<Row, 3> m_rows;
    std::optional<analysis::ChangeEffect> m_effect;
};

/// "parallel.strategy: full → none", a line each.
QString changeText(const std::string &changedJson);

} // namespace shardscope::ui
