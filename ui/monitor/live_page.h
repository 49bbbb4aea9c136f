// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/run_list.h"
#include "ui/common/page.h"
#include "ui/monitor/live_series.h"

class QComboBox;
class QLabel;
class QSplitter;
class QTableView;

namespace shardscope::ui {

class EventsModel;
class FailureCard;
class LiveCards;
class LiveCharts;
class RunCommands;
class RunHeader;

/// What a run does now: figures, charts over time, its events, and the commands for it.
class LivePage : public Page
{
    Q_OBJECT
public:
    LivePage(const Context &context, RunCommands &commands, QWidget *parent = nullptr);

    QString id() const override { return QStringLiteral("live"); }
    QString title() const override { return tr("Live"); }
    QString iconName() const override { return QStringLiteral("office-chart-line"); }

    void setRun(const run::RunSummary *run) override;
    bool showSteps(int64_t first, int64_t last) override;
    QList<QAction *> pageActions() const override { return m_sideActions; }
    /// Takes what stands beside the charts, and its commands. It hides itself where it has nothing to say.
    void setSide(QWidget *side, const QList<QAction *> &actions);

Q_SIGNALS:
    void showLogs(int rank);
    /// As setRun() was given it.
    void runSet(const shardscope::run::RunSummary *run);

protected:
    void recordingOpened() override;
    void recordingChanged(const RecordingChange &change) override;
    void recordingClosed() override;
    void onWaiting() override;
    void onFailed(const QString &message) override;
    void showEvent(QShowEvent *event) override;

private:
    QWidget *buildContent(RunCommands &commands);
    QWidget *buildEvents();
    void load();
    void setProblem(const QString &text);
    void showProblems();
    void take(const LiveDelta &delta);
    void refreshCards();
    void refreshCharts();
    void refreshRanks();
    std::optional<int> chosenRank() const;
    void pickTime(double seconds);
    void inspectStep(LiveSeries::StepKey key);
    void followEvent(int row);

    RunHeader *m_header = nullptr;
    FailureCard *m_failure = nullptr;
    QLabel *m_problem = nullptr; ///< what is wrong with the recording; state and commands stay in reach
    LiveCards *m_cards = nullptr;
    LiveCharts *m_charts = nullptr;
    QComboBox *m_rank = nullptr;
    EventsModel *m_events;
    QTableView *m_eventsView = nullptr;
    QSplitter *m_sides = nullptr;
    QList<QAction *> m_sideActions;
    LiveSeries m_series;
    LivePosition m_position;
    std::optional<run::RunSummary> m_run;
    QString m_unreadable; ///< why the recording can't be read; empty: it can
    bool m_again = false; ///< the recording grew while it was read
    bool m_loading = false;
    bool m_stale = false; ///< the charts lack what came while the page was hidden
};

} // namespace shardscope::ui
