// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/common/page.h"

#include <QPointer>
#include <QWidget>

class QLabel;
class QProgressBar;
class QPushButton;

namespace shardscope::ui {

/// The faces of a page that are not its content: empty (what to do), loading (progress, Cancel), error (cause).
class Notice : public QWidget
{
    Q_OBJECT
public:
    explicit Notice(QWidget *parent = nullptr);

    void setEmpty(const QString &headline, const QString &text, QAction *action = nullptr);
    void setLoading(const QString &text, int progress);
    void setError(const QString &headline, const QString &cause, QAction *action = nullptr);
    Page::Face face() const { return m_face; }
    QString text() const;

Q_SIGNALS:
    void cancelPressed();

protected:
    void changeEvent(QEvent *event) override;

private:
    void show(Page::Face face, const QString &headline, const QString &text, QAction *action);
    void updateIcon();

    Page::Face m_face = Page::Face::Empty;
    QLabel *m_icon;
    QLabel *m_headline;
    QLabel *m_text;
    QProgressBar *m_progress;
    QPushButton *m_cancel;
    QPushButton *m_do;
    QPointer<QAction> m_action;
};

} // namespace shardscope::ui
