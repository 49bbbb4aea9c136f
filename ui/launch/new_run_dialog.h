// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/config/check.h"

#include <QDialog>

class QLabel;
class QPlainTextEdit;
class QPushButton;

namespace shardscope::ui {

class LaunchCheck;
struct LaunchFacts;
class RunForm;
class RunLauncher;

/// New run: the form, what is wrong with it as one types, the equal command line, Launch. Stays open until the run's
/// folder is there, so that what the command line objects to is read here.
class NewRunDialog : public QDialog
{
    Q_OBJECT
public:
    explicit NewRunDialog(const QString &runsDirectory, QWidget *parent = nullptr);

    RunForm *form() const { return m_form; }
    /// Where the run would be made now.
    QString runFolder() const;
    QString commandLine() const;
    QPushButton *launchButton() const { return m_launch; }

public Q_SLOTS:
    void reject() override;

Q_SIGNALS:
    void launched(const QString &runFolder);

protected:
    void changeEvent(QEvent *event) override;

private:
    void buildLayout();
    void updateIcons();
    void judge();
    void take(const LaunchFacts &facts);
    void showVerdict();
    void showMessage(const QString &text, bool bad);
    void launch();

    QString m_runsDirectory;
    QString m_madeName; ///< what the run is called where no name is given
    RunForm *m_form;
    LaunchCheck *m_check;
    RunLauncher *m_launcher;
    QPlainTextEdit *m_command;
    QLabel *m_icon;
    QLabel *m_message;
    QPushButton *m_copy;
    QPushButton *m_launch;
    config::RunConfiguration m_configuration;
    std::vector<config::Problem> m_quick; ///< found without files
    std::vector<config::Problem> m_slow;  ///< of the disk
    QString m_data;
    bool m_diskKnown = false;
    bool m_isBad = false; ///< what the message says
};

} // namespace shardscope::ui
