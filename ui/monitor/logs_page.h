// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/run_list.h"
#include "ui/common/page.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QPlainTextEdit;

namespace shardscope::ui {

class LogTail;

/// The ranks' logs: one at a time, followed as it grows, with search.
class LogsPage : public Page
{
    Q_OBJECT
public:
    explicit LogsPage(const Context &context, QWidget *parent = nullptr);

    QString id() const override { return QStringLiteral("logs"); }
    QString title() const override { return tr("Logs"); }
    QString iconName() const override { return QStringLiteral("text-x-log"); }
    bool find(const QString &text) override;

    void setRun(const run::RunSummary *run) override;
    void showRank(int rank);

protected:
    void onWaiting() override;
    void onFailed(const QString &message) override;
    void recordingClosed() override;

private:
    QWidget *buildContent();
    void listLogs();
    void showNone();
    void followCurrent();
    void append(const QString &text);
    bool search(bool backward, bool fromHere);
    void highlight();

    LogTail *m_tail;
    QComboBox *m_log = nullptr;
    QCheckBox *m_follow = nullptr;
    QCheckBox *m_wrap = nullptr;
    QLineEdit *m_search = nullptr;
    QLabel *m_hits = nullptr;
    QPlainTextEdit *m_text = nullptr;
    std::optional<run::RunSummary> m_run;
    int m_wantedRank = 0;
};

} // namespace shardscope::ui
