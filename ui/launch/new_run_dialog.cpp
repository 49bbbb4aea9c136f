// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/launch/new_run_dialog.h"

#include "core/base/clock.h"
#include "core/config/registry.h"
#include "core/run/run_folder.h"
#include "core/shapes/known_models.h"
#include "ui/common/icons.h"
#include "ui/launch/command_line.h"
#include "ui/launch/field.h"
#include "ui/launch/launch_check.h"
#include "ui/launch/run_form.h"
#include "ui/launch/run_launcher.h"

#include <QApplication>
#include <QClipboard>
#include <QDialogButtonBox>
#include <QEvent>
#include <QFontDatabase>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScreen>
#include <QScrollArea>
#include <QVBoxLayout>

namespace shardscope::ui {

NewRunDialog::NewRunDialog(const QString &runsDirectory, QWidget *parent)
    : QDialog(parent)
    , m_runsDirectory(runsDirectory)
    , m_form(new RunForm(shapes::knownModels(), this))
    , m_check(new LaunchCheck(shapes::knownModels(), this))
    , m_launcher(new RunLauncher(this))
    , m_command(new QPlainTextEdit(this))
    , m_icon(new QLabel(this))
    , m_message(new QLabel(this))
    , m_copy(new QPushButton(tr("C&opy"), this))
    , m_launch(new QPushButton(tr("&Launch"), this))
{
    setWindowTitle(tr("New run"));
    buildLayout();
    m_form->field("run.directory")->setPlaceholder(runsDirectory);
    connect(m_form, &RunForm::edited, this, &NewRunDialog::judge);
    connect(m_check, &LaunchCheck::machineKnown, this, &NewRunDialog::judge);
    connect(m_check, &LaunchCheck::found, this, &NewRunDialog::take);
    connect(m_launch, &QPushButton::clicked, this, &NewRunDialog::launch);
    connect(m_launcher, &RunLauncher::started, this, [this](const QString &folder) {
        Q_EMIT launched(folder);
        accept();
    });
    connect(m_launcher, &RunLauncher::said, this, [this](const QString &line) { showMessage(line, false); });
    connect(m_launcher, &RunLauncher::failed, this, [this](const QString &message) {
        m_form->setEnabled(true);
        judge(); // the name may be taken now
        showMessage(message, true);
    });
    judge();
}

void NewRunDialog::buildLayout()
{
    auto *scroll = new QScrollArea(this);
    scroll->setWidget(m_form);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);

    auto *commandLabel = new QLabel(tr("The same on the &command line:"), this);
    commandLabel->setBuddy(m_command);
    m_command->setReadOnly(true);
    m_command->setTabChangesFocus(true);
    m_command->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    m_command->setFixedHeight(m_command->fontMetrics().lineSpacing() * 3 + 14);
    m_copy->setAutoDefault(false);
    connect(m_copy, &QPushButton::clicked, this, [this] { QApplication::clipboard()->setText(commandLine()); });

    m_message->setWordWrap(true);
    m_message->setTextFormat(Qt::PlainText);
    m_message->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    m_message->setMinimumHeight(2 * m_message->fontMetrics().lineSpacing());
    m_message->setAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    auto *verdict = new QHBoxLayout;
    verdict->setSpacing(8);
    verdict->addWidget(m_icon, 0, Qt::AlignTop);
    verdict->addWidget(m_message, 1);

    m_launch->setDefault(true);
    m_launch->setShortcut(Qt::CTRL | Qt::Key_Return);
    m_launch->setToolTip(tr("Start the run (Ctrl+Enter). It goes on when this window closes."));
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Cancel, this);
    buttons->addButton(m_launch, QDialogButtonBox::AcceptRole);
    disconnect(buttons, nullptr, this, nullptr);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);

    auto *command = new QHBoxLayout;
    command->addWidget(m_command, 1);
    command->addWidget(m_copy, 0, Qt::AlignTop);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(16, 16, 16, 16);
    layout->setSpacing(8);
    layout->addWidget(scroll, 1);
    layout->addWidget(commandLabel);
    layout->addLayout(command);
    layout->addLayout(verdict);
    layout->addWidget(buttons);
    const QSize available = screen()->availableSize();
    resize(QSize(860, 680).boundedTo(available * 0.94));
}

QString NewRunDialog::runFolder() const
{
    const QString name = QString::fromStdString(m_configuration.run.name);
    const QString directory = QString::fromStdString(m_configuration.run.directory);
    return (directory.isEmpty() ? m_runsDirectory : directory) + u'/' + (name.isEmpty() ? m_madeName : name);
}

QString NewRunDialog::commandLine() const
{
    return shellLine(QStringLiteral("shardscope-cli"), runArguments(m_configuration, runFolder()));
}

void NewRunDialog::judge()
{
    m_quick.clear();
    m_configuration = m_form->configuration(m_quick);
    const auto &asked = m_configuration.model;
    const std::string model =
        asked.path.empty() ? asked.preset : std::filesystem::path(asked.path).lexically_normal().filename().string();
    m_madeName = QString::fromStdString(run::defaultRunName(model, m_configuration.parallel.ranks, realtimeNs()));
    m_form->field("run.name")->setPlaceholder(m_madeName);
    m_diskKnown = false;
    m_quick = m_check->judge(m_configuration, runFolder(), std::move(m_quick));
    m_command->setPlainText(commandLine());
    showVerdict();
}

void NewRunDialog::take(const LaunchFacts &facts)
{
    m_slow = facts.problems;
    m_data = facts.data;
    m_diskKnown = true;
    showVerdict();
}

void NewRunDialog::showVerdict()
{
    if (m_launcher->isLaunching())
        return;
    std::vector<config::Problem> all = m_quick;
    if (m_diskKnown)
        all.insert(all.end(), m_slow.begin(), m_slow.end());
    m_form->showProblems(all);
    const bool ready = all.empty() && m_diskKnown && m_check->knowsMachine();
    m_launch->setEnabled(ready);
    if (!all.empty())
        showMessage(QString::fromStdString(all.front().message), true);
    else if (!m_check->knowsMachine())
        showMessage(tr("Looking at this machine's devices…"), false);
    else if (!m_diskKnown)
        showMessage(tr("Looking at the data…"), false);
    else
        showMessage(tr("Data: %1").arg(m_data), false);
}

void NewRunDialog::showMessage(const QString &text, bool bad)
{
    m_message->setText(text);
    m_isBad = bad;
    updateIcons();
}

void NewRunDialog::changeEvent(QEvent *event)
{
    QDialog::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        updateIcons();
}

/// They are tinted in the text's colour.
void NewRunDialog::updateIcons()
{
    const QString name = m_isBad ? QStringLiteral("dialog-error") : QStringLiteral("dialog-information");
    m_icon->setPixmap(icon(name, palette()).pixmap(QSize(22, 22), devicePixelRatioF()));
    m_copy->setIcon(icon(QStringLiteral("edit-copy"), palette()));
    m_launch->setIcon(icon(QStringLiteral("media-playback-start"), palette()));
}

/// Cancel ends a launch first, and the dialog where there is none.
void NewRunDialog::reject()
{
    if (m_launcher->cancel())
        showMessage(tr("Cancelling…"), false);
    else
        QDialog::reject();
}

void NewRunDialog::launch()
{
    const Result<QString> program = findCommandLine();
    if (!program) {
        showMessage(QString::fromStdString(program.error().text), true);
        return;
    }
    m_launch->setEnabled(false);
    m_form->setEnabled(false);
    m_launcher->launch(*program, runArguments(m_configuration, runFolder()), runFolder());
    if (m_launcher->isLaunching())
        showMessage(tr("Starting…"), false);
}

} // namespace shardscope::ui
