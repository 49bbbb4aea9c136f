// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>

class QLabel;

namespace shardscope::ui {

/// A figure with its name and a line beneath: "Loss · 8.4132 · step 214".
class StatCard : public QFrame
{
    Q_OBJECT
public:
    StatCard(const QString &caption, const QString &toolTip, QWidget *parent = nullptr);

    void setValue(const QString &value, const QString &detail = {});
    QString value() const;

private:
    QLabel *m_caption;
    QLabel *m_value;
    QLabel *m_detail;
};

} // namespace shardscope::ui
