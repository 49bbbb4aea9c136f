// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/common/page.h"

#include <QWidget>

class QLabel;
class QPlainTextEdit;
class QPushButton;

namespace shardscope::ui {

/// What is selected, as names and values, and the query that tells more.
class Inspector : public QWidget
{
    Q_OBJECT
public:
    explicit Inspector(QWidget *parent = nullptr);

    void setContent(const InspectorContent &content);
    void clear();

private:
    QLabel *m_title;
    QWidget *m_facts;
    QLabel *m_sqlLabel;
    QPlainTextEdit *m_sql;
    QPushButton *m_copy;
};

} // namespace shardscope::ui
