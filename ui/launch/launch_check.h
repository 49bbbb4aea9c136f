// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/config/check.h"

#include <QObject>
#include <QString>
#include <QTimer>

namespace shardscope::ui {

/// What stands in the way of a launch that only the machine and the disk can tell: its devices, the data, the folder.
struct LaunchFacts
{
    std::vector<config::Problem> problems;
    QString data; ///< a sentence on the data: what, how much, what was left out
};

/// Judges a configuration as it is typed: at once what needs no file, and after a pause, on a thread, the data and the
/// folder. The newest configuration counts.
class LaunchCheck : public QObject
{
    Q_OBJECT
public:
    explicit LaunchCheck(std::vector<config::KnownModel> models, QObject *parent = nullptr);

    /// Problems found without files; found() follows with the rest. fieldProblems: what could not even be read.
    std::vector<config::Problem> judge(const config::RunConfiguration &configuration, const QString &runFolder,
                                       std::vector<config::Problem> fieldProblems);
    /// The machine has been looked at (judge() again then).
    bool knowsMachine() const { return m_machine.has_value(); }
    const std::optional<config::MachineFacts> &machine() const { return m_machine; }

Q_SIGNALS:
    void machineKnown();
    void found(const shardscope::ui::LaunchFacts &facts);

private:
    void lookAtDisk();

    std::vector<config::KnownModel> m_models;
    std::optional<config::MachineFacts> m_machine;
    config::RunConfiguration m_configuration;
    QString m_runFolder;
    QTimer m_pause;
    quint64 m_serial = 0;
};

/// The data and the run's folder, looked at. Blocks.
LaunchFacts lookAtDisk(const config::RunConfiguration &configuration, int64_t vocabulary, const QString &runFolder);

} // namespace shardscope::ui
