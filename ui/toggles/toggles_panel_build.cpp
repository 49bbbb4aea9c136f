// SPDX-License-Identifier: GPL-3.0-or-later
// Builds TogglesPanel.
#include "ui/common/recording_reader.h"
#include "ui/launch/field.h"
#include "ui/monitor/run_commands.h"
#include "ui/toggles/effect_card.h"
#include "ui/toggles/toggles_panel.h"
#include "ui/toggles/unit_tree.h"

#include <QAction>
#include <QGridLayout>
#include <QGroupBox>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

namespace shardscope::ui {

TogglesPanel::TogglesPanel(const Page::Context &context, RunCommands &commands, QWidget *parent)
    : QWidget(parent)
    , m_context(context)
    , m_commands(commands)
    , m_apply(new QAction(tr("&Apply changes"), this))
    , m_undo(new QAction(tr("&Undo change"), this))
    , m_shown(new QAction(tr("Settings of the &running job"), this))
    , m_title(new QLabel(this))
    , m_tree(new UnitTree(this))
    , m_state(new QLabel(this))
    , m_scroll(new QScrollArea(this))
    , m_problem(new QLabel(this))
    , m_command(new QLabel(this))
    , m_effect(new EffectCard(this))
{
    setAccessibleName(tr("Settings of the running job"));
    m_apply->setObjectName(QStringLiteral("apply"));
    m_undo->setObjectName(QStringLiteral("undo"));
    m_tree->setObjectName(QStringLiteral("units"));
    m_apply->setShortcut(Qt::CTRL | Qt::SHIFT | Qt::Key_A);
    m_undo->setShortcut(Qt::CTRL | Qt::SHIFT | Qt::Key_Z);
    m_shown->setShortcut(Qt::CTRL | Qt::SHIFT | Qt::Key_D);
    m_shown->setCheckable(true);
    m_shown->setChecked(true);
    connect(m_shown, &QAction::toggled, this, &TogglesPanel::updateShown);
    // What the settings are for, and what is done with them, stays in sight; the form between them scrolls, and what
    // the last change did stands at its head.
    auto *inner = new QWidget;
    auto *scrolled = new QVBoxLayout(inner);
    scrolled->setContentsMargins(0, 0, 4, 0);
    scrolled->setSpacing(8);
    scrolled->addWidget(m_effect);
    scrolled->addWidget(buildForm());
    scrolled->addStretch(1);
    m_scroll->setWidget(inner);
    m_scroll->setWidgetResizable(true);
    m_scroll->setFrameShape(QFrame::NoFrame);
    QFont bold = m_title->font();
    bold.setBold(true);
    m_title->setFont(bold);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 16, 8, 8);
    layout->setSpacing(8);
    layout->addWidget(m_title);
    layout->addWidget(m_state);
    layout->addWidget(m_tree);
    layout->addWidget(m_scroll, 1);
    layout->addWidget(m_problem);
    layout->addWidget(m_command);
    m_buttons = buildButtons();
    layout->addWidget(m_buttons);
    m_tree->setFixedHeight(m_tree->fontMetrics().height() * 6);
    for (QLabel *label : {m_state, m_problem, m_command}) {
        label->setWordWrap(true);
        label->setTextFormat(Qt::PlainText);
        label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    }
    m_problem->setForegroundRole(QPalette::BrightText); // the theme's colour of errors
    m_command->setForegroundRole(QPalette::PlaceholderText);
    m_command->setAccessibleName(tr("The same on the command line"));
    setMinimumWidth(320);

    connect(m_apply, &QAction::triggered, this, &TogglesPanel::apply);
    connect(m_undo, &QAction::triggered, this, &TogglesPanel::undo);
    connect(m_tree, &UnitTree::choiceChanged, this, &TogglesPanel::showValues);
    connect(&m_commands, &RunCommands::answered, this, &TogglesPanel::onAnswered);
    connect(&m_commands, &RunCommands::refused, this, &TogglesPanel::onRefused);
    connect(m_effect, &EffectCard::inspect, this, &TogglesPanel::inspect);
    connect(&m_context.reader, &RecordingReader::opened, this, [this] { readUnits(), readEffect(); });
    connect(&m_context.reader, &RecordingReader::changed, this, [this] { readUnits(), readEffect(); });
    connect(&m_context.reader, &RecordingReader::closed, this, [this] {
        m_tree->setUnits({});
        m_effect->setEffect(std::nullopt);
        m_configs = m_settledConfigs = 0;
        m_hasEffect = false;
        updateShown();
    });
    setProblem({});
    showValues();
    updateShown();
}

void TogglesPanel::addGroup(QVBoxLayout *layout, const QString &title, std::string_view section)
{
    auto *group = new QGroupBox(title, this);
    auto *grid = new QGridLayout(group);
    grid->setHorizontalSpacing(8);
    grid->setVerticalSpacing(4);
    grid->setColumnStretch(1, 1);
    for (const config::Key *key : liveKeysFor({})) {
        if (key->section() != section)
            continue;
        auto *field = new Field(*key, {}, group);
        field->editor()->setMinimumWidth(96);
        field->addTo(grid);
        connect(field, &Field::edited, this, &TogglesPanel::updateButtons);
        m_fields.push_back(field);
    }
    if (grid->count() > 0)
        layout->addWidget(group);
    else
        delete group;
}

QWidget *TogglesPanel::buildForm()
{
    auto *form = new QWidget(this);
    auto *layout = new QVBoxLayout(form);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(8);
    addGroup(layout, tr("Sharding"), "parallel");
    addGroup(layout, tr("Memory"), "memory");
    addGroup(layout, tr("Offload"), "offload");
    addGroup(layout, tr("Optimizer"), "optimizer");
    addGroup(layout, tr("Checkpoints"), "checkpoint");
    addGroup(layout, tr("Recording"), "record");
    return form;
}

QWidget *TogglesPanel::buildButtons()
{
    auto *buttons = new QWidget(this);
    auto *layout = new QHBoxLayout(buttons);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(8);
    for (QAction *action : {m_apply, m_undo}) {
        auto *button = new QPushButton(action->text(), buttons);
        button->setObjectName(action->objectName());
        const auto follow = [button, action] {
            button->setText(action->text());
            button->setEnabled(action->isEnabled());
            button->setToolTip(action->toolTip());
        };
        follow();
        connect(action, &QAction::changed, button, follow);
        connect(button, &QPushButton::clicked, action, &QAction::trigger);
        layout->addWidget(button);
    }
    layout->addStretch(1);
    return buttons;
}

} // namespace shardscope::ui
