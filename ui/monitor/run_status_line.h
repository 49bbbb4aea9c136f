// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/run_status.h"
#include "profiler/store/snapshot.h"

#include <QTimer>
#include <QWidget>

class QLabel;

namespace shardscope::ui {

/// The status bar: a dot for each rank, the step with speed and ETA, what is recorded and dropped, memory. A message
/// takes their place for a while; one that tells of a failure until it is clicked.
class RunStatusLine : public QWidget
{
    Q_OBJECT
public:
    explicit RunStatusLine(QWidget *parent = nullptr);

    void setRun(const run::RunStatus *status, const store::Catalog *catalog);
    void showMessage(const QString &text, bool bad);

    static QString progressText(const run::RunStatus &status);
    static QString recordedText(const store::Catalog &catalog);
    static QString memoryText(const run::RunStatus &status, const store::Catalog *catalog);

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;
    void changeEvent(QEvent *event) override;

private:
    void showRanks();

    std::vector<run::RankStatus> m_rankStates;
    QLabel *m_ranks;
    QLabel *m_progress;
    QLabel *m_recorded;
    QLabel *m_memory;
    QLabel *m_message;
    QTimer m_expiry;
};

} // namespace shardscope::ui
