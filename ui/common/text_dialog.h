// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

namespace shardscope::ui {

/// A text to read and copy: a query, a command line, a licence.
class TextDialog : public QDialog
{
    Q_OBJECT
public:
    TextDialog(const QString &title, const QString &text, QWidget *parent = nullptr);
};

} // namespace shardscope::ui
