// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QLabel;
class QLineEdit;

namespace shardscope::ui::timeline {

/// Where one types what to look for, with the number of hits and the way from one to the next.
class SearchBar : public QWidget
{
    Q_OBJECT
public:
    explicit SearchBar(QWidget *parent = nullptr);

    QString text() const;
    void setText(const QString &text);
    void start(); ///< focus, all selected
    void showHits(quint64 count, qint64 current, bool truncated);
    void showError(const QString &message);
    void clearMessage();

Q_SIGNALS:
    void textChanged(const QString &text);
    void next();
    void previous();
    /// Escape: the lanes should have the focus.
    void left();

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    QLineEdit *m_edit;
    QLabel *m_message;
};

} // namespace shardscope::ui::timeline
