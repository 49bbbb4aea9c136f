// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>

namespace shardscope::ui {

/// A line of plain text that asks for no more room than there is: what does not fit ends in "…", and the tool tip has
/// it whole. A tool tip that the caller sets stays.
class ElidedLabel : public QLabel
{
    Q_OBJECT
public:
    explicit ElidedLabel(QWidget *parent = nullptr);
    explicit ElidedLabel(const QString &text, QWidget *parent = nullptr);

    QSize minimumSizeHint() const override;

protected:
    void paintEvent(QPaintEvent *event) override;
    bool event(QEvent *event) override;

private:
    bool isCut() const;
};

} // namespace shardscope::ui
