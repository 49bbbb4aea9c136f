// SPDX-License-Identifier: GPL-3.0-or-later
// What TogglesPanel does; toggles_panel_build.cpp builds it.
#include "ui/toggles/toggles_panel.h"

#include "core/config/configuration_file.h"
#include "core/run/run_list.h"
#include "ui/common/paths.h"
#include "ui/common/recording_reader.h"
#include "ui/common/text.h"
#include "ui/launch/command_line.h"
#include "ui/launch/field.h"
#include "ui/monitor/run_commands.h"
#include "ui/toggles/effect_card.h"
#include "ui/toggles/force_question.h"
#include "ui/toggles/unit_tree.h"

#include <QAction>
#include <QFileInfo>
#include <QLabel>
#include <QScrollArea>
#include <nlohmann/json.hpp>

namespace shardscope::ui {

using control::RequestKind;

static const QByteArray kEffectChannel = QByteArrayLiteral("effect");

void TogglesPanel::setRun(const run::RunSummary *run)
{
    const QString folder = run ? fromPath(run->folder.root()) : QString();
    const bool live = run && (run->status.state == RunState::Running || run->status.state == RunState::Paused) &&
                      !run->status.socket.empty();
    const bool ended = run && !run->status.live();
    const bool another = folder != m_folder;
    if (!another && live == m_live && ended == m_ended)
        return;
    m_folder = folder;
    m_live = live;
    m_ended = ended;
    if (another)
        m_inForce.reset();
    if (another || !live) {
        m_waiting.reset();
        m_sent.clear();
        m_applied.clear();
        setProblem({});
        showValues();
    }
    if (ended)
        readLastInForce();
    updateShown();
    if (live)
        askConfiguration();
}

void TogglesPanel::updateShown()
{
    setVisible(m_shown->isChecked() && (m_live || m_hasEffect));
}

void TogglesPanel::askConfiguration()
{
    m_commands.ask(m_folder, {.kind = RequestKind::Configuration});
}

void TogglesPanel::onAnswered(const QString &folder, RequestKind kind, const nlohmann::json &result)
{
    if (folder != m_folder)
        return;
    if (kind == RequestKind::Configuration)
        return takeConfiguration(result);
    if (kind == RequestKind::Checkpoint) {
        if (m_waiting == kind) // else the run has ended meanwhile
            send({.kind = RequestKind::Set, .live = m_request});
        return;
    }
    m_waiting.reset();
    m_applied = std::exchange(m_sent, {});
    setProblem({});
    const auto step = result.find("step");
    const bool changes = step != result.end() && step->is_number_integer();
    Q_EMIT told(changes ? tr("In force from step %1: %2")
                              .arg(step->get<int64_t>())
                              .arg(QString::fromStdString(result.value("text", "")))
                        : tr("Nothing changes: it is so already."));
    if (changes)
        m_scroll->ensureVisible(0, 0); // the card of what it did
    askConfiguration();
}

void TogglesPanel::onRefused(const QString &folder, RequestKind kind, const QString &why, bool forcible)
{
    if (folder != m_folder)
        return;
    if (kind != RequestKind::Configuration)
        m_waiting.reset();
    setProblem(why);
    updateButtons();
    if (forcible)
        askToForce(this, why, [this, folder, request = m_request](bool checkpointFirst) {
            if (folder == m_folder && m_live)
                applyAnyway(request, checkpointFirst);
        });
}

void TogglesPanel::takeConfiguration(const nlohmann::json &result)
{
    config::RunConfiguration configuration;
    const auto given = result.find("configuration");
    const auto json = nlohmann::ordered_json::parse(given == result.end() ? "{}" : given->dump());
    if (auto applied = config::applyJson(configuration, json, "The run"); !applied)
        return setProblem(QString::fromStdString(applied.error().text));
    // What was typed and not applied stays, whoever has set something else.
    std::map<std::string, std::string> typed = edits();
    for (const auto &[path, text] : std::exchange(m_applied, {})) {
        if (const auto one = typed.find(path); one != typed.end() && one->second == text)
            typed.erase(one);
    }
    m_inForce = std::move(configuration);
    const auto undo = result.find("undo");
    const bool canUndo = undo != result.end() && undo->is_object();
    m_restores = canUndo ? changeText(undo->dump()) : QString();
    showValues();
    restore(typed);
}

/// What is in force for what is chosen, in place of whatever stood in the form.
void TogglesPanel::showValues()
{
    m_showing = true;
    const Units units = m_tree->chosen();
    m_values = m_inForce ? liveValues(*m_inForce, units) : decltype(m_values)();
    const std::vector<const config::Key *> keys = liveKeysFor(units);
    for (Field *field : m_fields) {
        const auto value = m_values.find(std::string(field->key().path));
        const bool fits = std::find(keys.begin(), keys.end(), &field->key()) != keys.end();
        field->editor()->setEnabled(fits && value != m_values.end() && m_live);
        field->setProblem({});
        if (value == m_values.end())
            field->setMixed({});
        else if (value->second)
            field->setText(QString::fromStdString(*value->second));
        else
            field->setMixed(tr("mixed"));
    }
    m_showing = false;
    updateButtons();
}

void TogglesPanel::restore(const std::map<std::string, std::string> &edits)
{
    m_showing = true;
    for (Field *field : m_fields) {
        const auto edit = edits.find(std::string(field->key().path));
        if (edit != edits.end() && field->editor()->isEnabled())
            field->setText(QString::fromStdString(edit->second));
    }
    m_showing = false;
    updateButtons();
}

std::map<std::string, std::string> TogglesPanel::edits() const
{
    std::map<std::string, std::string> edits;
    for (const Field *field : m_fields) {
        const std::string path(field->key().path);
        const auto value = m_values.find(path);
        const std::string text = field->text().toStdString();
        if (value != m_values.end() && !text.empty() && text != value->second.value_or(""))
            edits[path] = text;
    }
    return edits;
}

QString TogglesPanel::command() const
{
    const auto changed = edits();
    if (changed.empty())
        return {};
    const auto request = requestFor(changed, m_tree->chosen(), m_tree->units());
    QStringList words{QStringLiteral("set"), QFileInfo(m_folder).fileName()};
    for (const std::string &assignment : request.assignments)
        words << QString::fromStdString(assignment);
    for (const std::string &rule : request.rules)
        words << QStringLiteral("--unit") << QString::fromStdString(rule);
    return shellLine(QStringLiteral("shardscope-cli"), words);
}

void TogglesPanel::updateButtons()
{
    if (m_showing)
        return;
    const bool ready = m_live && m_inForce && !m_waiting;
    m_title->setText(m_ended ? tr("Settings of the run") : tr("Settings of the running job"));
    m_buttons->setVisible(!m_ended);
    m_state->setText(m_folder.isEmpty() ? tr("No run is open.")
                     : m_ended          ? tr("This run has ended. What was last in force:")
                     : !m_live          ? tr("Settings change while a run goes on. This one does not.")
                     : !m_waiting       ? QString()
                     : m_waiting == RequestKind::Checkpoint ? tr("A checkpoint is written first …")
                                                            : tr("In force in two steps …"));
    m_state->setVisible(!m_state->text().isEmpty());
    m_apply->setEnabled(ready && !edits().empty());
    m_undo->setEnabled(ready && !m_restores.isEmpty());
    m_undo->setToolTip(m_restores.isEmpty() ? tr("Nothing has been changed") : tr("Restores:\n%1").arg(m_restores));
    m_apply->setToolTip(tr("In force on all ranks at one step, two steps from now"));
    const QString line = command();
    m_command->setText(line);
    m_command->setVisible(!line.isEmpty());
}

void TogglesPanel::setProblem(const QString &text)
{
    m_problem->setText(text);
    m_problem->setVisible(!text.isEmpty());
}

void TogglesPanel::apply()
{
    const auto changed = edits();
    if (changed.empty())
        return;
    m_sent = changed;
    m_request = requestFor(changed, m_tree->chosen(), m_tree->units());
    send({.kind = RequestKind::Set, .live = m_request});
}

/// What was refused, whatever stands in the form by now.
void TogglesPanel::applyAnyway(const config::LiveRequest &request, bool checkpointFirst)
{
    m_request = request;
    m_request.force = true;
    if (checkpointFirst)
        send({.kind = RequestKind::Checkpoint}); // its answer brings the Set
    else
        send({.kind = RequestKind::Set, .live = m_request});
}

void TogglesPanel::undo()
{
    m_sent.clear();
    send({.kind = RequestKind::Undo});
}

void TogglesPanel::send(const control::Request &request)
{
    m_waiting = request.kind;
    setProblem({});
    m_commands.ask(m_folder, request);
    updateButtons();
}

/// The units of the newest attempt's first rank: those of the others are the same.
void TogglesPanel::readUnits()
{
    const auto catalog = m_context.reader.catalog();
    if (!catalog || catalog->attempts.empty() || catalog->attempts.back().ranks.empty())
        return;
    Units units;
    for (const store::UnitEntry &unit : catalog->units) {
        if (unit.process == catalog->attempts.back().ranks.front() && unit.parent == store::kNone)
            units.push_back(unit.name);
    }
    m_tree->setUnits(units);
    if (m_ended)
        readLastInForce();
    // Somebody else (the command line) has changed it.
    if (std::exchange(m_configs, catalog->configs.size()) != catalog->configs.size() && m_live && !m_waiting)
        askConfiguration();
}

void TogglesPanel::readLastInForce()
{
    const auto catalog = m_context.reader.catalog();
    if (m_inForce || !catalog)
        return;
    const store::ConfigInfo *last = catalog->lastConfig();
    const auto json = nlohmann::ordered_json::parse(last ? last->fullJson : "", nullptr, false);
    config::RunConfiguration configuration;
    if (!json.is_object() || !config::applyJson(configuration, json, "The recording"))
        return; // of another version: the fields stay empty
    m_inForce = std::move(configuration);
    showValues();
}

void TogglesPanel::readEffect()
{
    const auto catalog = m_context.reader.catalog();
    if (!catalog || (m_settledConfigs != 0 && m_settledConfigs == catalog->configs.size()))
        return;
    m_context.reader.request<std::optional<analysis::ChangeEffect>>(
        this, kEffectChannel,
        [](store::Recording &recording, const store::CancelToken &cancel)
            -> Result<RecordingReader::Snapshot<std::optional<analysis::ChangeEffect>>> {
            auto effect = analysis::lastChangeEffect(recording, cancel);
            if (!effect)
                return tl::unexpected<Error>(effect.error());
            return std::make_shared<const std::optional<analysis::ChangeEffect>>(std::move(*effect));
        },
        [this](const Result<RecordingReader::Snapshot<std::optional<analysis::ChangeEffect>>> &effect) {
            if (!effect)
                return; // the Live page says why the recording can't be read
            m_effect->setEffect(**effect);
            m_hasEffect = (*effect)->has_value();
            const bool final = m_hasEffect && (**effect)->stepsAfter >= analysis::kStepsAtMost;
            m_settledConfigs = final ? m_configs : 0;
            updateShown();
        });
}

} // namespace shardscope::ui
