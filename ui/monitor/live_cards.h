// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/run_status.h"
#include "ui/monitor/live_series.h"

#include <QWidget>

namespace shardscope::ui {

class StatCard;

/// The figures at the head of the Live page. What state.json says counts; what it leaves out comes from the recording.
class LiveCards : public QWidget
{
    Q_OBJECT
public:
    explicit LiveCards(QWidget *parent = nullptr);

    void refresh(const run::RunStatus &status, const LiveSeries &series, const store::Catalog *catalog);

private:
    void showLoss(const run::RunStatus &status, const LiveSeries &series);
    void showSpeed(const run::RunStatus &status, const StepPoint *step);
    void showMemory(const run::RunStatus &status, const StepPoint *step, const store::Catalog *catalog);

    StatCard *m_loss;
    StatCard *m_speed;
    StatCard *m_stepTime;
    StatCard *m_mfu;
    StatCard *m_memory;
    StatCard *m_exposed;
};

/// Model FLOP/s of all ranks ÷ what their devices could do; empty where either is not known.
std::optional<double> modelFlopsUtilization(double tokensPerSecond, const store::Catalog &catalog);

} // namespace shardscope::ui
