// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/run_list.h"

#include <QWidget>
#include <nlohmann/json_fwd.hpp>
#include <string>

class QLabel;
class QToolButton;

namespace shardscope::ui {

class RunCommands;

/// The line above the Live page: name, state, what is trained how, and the buttons of the commands.
class RunHeader : public QWidget
{
    Q_OBJECT
public:
    RunHeader(RunCommands &commands, QWidget *parent = nullptr);

    void setRun(const run::RunSummary &run);
    /// As a recording has it last in force, in place of what the attempt began with.
    void setInForce(int64_t attempt, const std::string &configurationJson);

    /// With buttons of icons alone: they take their texts on where there is room.
    QSize minimumSizeHint() const override;

protected:
    void changeEvent(QEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;

private:
    void readConfiguration(const run::RunFolder &folder);
    void showState();
    void fitButtons();

    QLabel *m_name;
    QLabel *m_icon;
    QLabel *m_state;
    QLabel *m_asked;
    QList<QToolButton *> m_whileLive; ///< those that a run that has ended does not need
    QToolButton *m_resume;
    run::RunStatus m_status;
    QString m_folder;
    int m_attempt = 0;         ///< that m_asked tells of
    std::string m_inForceJson; ///< empty: m_asked tells of its beginning
};

/// "15m · 2 ranks · full · fp32 · 4 × 256 tokens a rank · cpu" of an attempt's resolved keys.
QString askedText(const nlohmann::json &resolved);

} // namespace shardscope::ui
