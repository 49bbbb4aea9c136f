// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/run_list.h"

#include <QFrame>

class QLabel;
class QPlainTextEdit;

namespace shardscope::ui {

/// What stands on top of a run that failed or was lost: which rank, by which signal or error, its last lines, what to
/// do about it.
class FailureCard : public QFrame
{
    Q_OBJECT
public:
    explicit FailureCard(QWidget *parent = nullptr);

    /// Hides itself where there is nothing to tell. The last lines are read in the background.
    void setRun(const run::RunSummary &run);

    /// "Rank 1 was killed by signal 9 (SIGKILL)": the headline, also for notices.
    static QString headline(const run::RunStatus &status);
    /// What a user can do, judged by signal, exit code and text.
    static QString advice(const run::RunStatus &status);

Q_SIGNALS:
    void showLogs(int rank);

protected:
    void changeEvent(QEvent *event) override;

private:
    void updateIcon();
    void readLastLines(const run::RunSummary &run);

    QLabel *m_icon;
    QLabel *m_headline;
    QLabel *m_text;
    QLabel *m_flight; ///< the last collectives, where the flight ring tells
    QLabel *m_advice;
    QPlainTextEdit *m_lines;
    int m_rank = 0;
    QString m_shown; ///< folder, attempt and state that the card tells of
};

/// The last lines of a text file; empty where there is none. Reads no more than its last 16 KiB.
QString lastLines(const std::filesystem::path &file, int lines);

} // namespace shardscope::ui
