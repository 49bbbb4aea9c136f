// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/common/page.h"
#include "ui/toggles/toggle_values.h"

#include <QWidget>
#include <nlohmann/json_fwd.hpp>
#include <optional>

class QAction;
class QLabel;
class QScrollArea;
class QVBoxLayout;

namespace shardscope::control {
enum class RequestKind;
struct Request;
} // namespace shardscope::control
namespace shardscope::analysis {
struct ChangeEffect;
}

namespace shardscope::ui {

class EffectCard;
class Field;
class RunCommands;
class UnitTree;

/// The dock of toggles beside the Live page: what may change of the job that goes on, for the whole model or for units;
/// Apply and Undo; what the last change did. Its form is made from the registry's live keys; it asks the run itself
/// what is in force, and so shows what the command line has set. Of a run that has ended it shows what its recording
/// has as last in force, to be read only.
class TogglesPanel : public QWidget
{
    Q_OBJECT
public:
    TogglesPanel(const Page::Context &context, RunCommands &commands, QWidget *parent = nullptr);

    /// The open run, again each second; nullptr: none.
    void setRun(const run::RunSummary *run);
    QAction *applyAction() const { return m_apply; }
    QAction *undoAction() const { return m_undo; }
    /// Checkable: whether the panel is wanted. It shows itself while a run goes on, and where a change did something.
    QAction *shownAction() const { return m_shown; }
    /// As the command line would have it; empty where nothing was edited.
    QString command() const;

Q_SIGNALS:
    void inspect(const shardscope::ui::InspectorContent &content);
    /// A sentence for the status bar.
    void told(const QString &message);

private:
    QWidget *buildForm();
    QWidget *buildButtons();
    void addGroup(QVBoxLayout *layout, const QString &title, std::string_view section);
    void askConfiguration();
    void onAnswered(const QString &folder, control::RequestKind kind, const nlohmann::json &result);
    void onRefused(const QString &folder, control::RequestKind kind, const QString &why, bool forcible);
    void takeConfiguration(const nlohmann::json &result);
    void readLastInForce();
    void showValues();
    void restore(const std::map<std::string, std::string> &edits);
    void updateButtons();
    void updateShown();
    void readUnits();
    void readEffect();
    void apply();
    void applyAnyway(const config::LiveRequest &request, bool checkpointFirst);
    void send(const control::Request &request);
    void undo();
    void setProblem(const QString &text);
    /// By key path, what was edited and is another value than the one in force.
    std::map<std::string, std::string> edits() const;

    Page::Context m_context;
    RunCommands &m_commands;
    QAction *m_apply;
    QAction *m_undo;
    QAction *m_shown;
    QLabel *m_title;
    UnitTree *m_tree;
    std::vector<Field *> m_fields;
    QLabel *m_state; ///< why nothing can be set
    QScrollArea *m_scroll;
    QLabel *m_problem;
    QLabel *m_command;
    EffectCard *m_effect;
    QWidget *m_buttons = nullptr;
    QString m_folder;
    bool m_live = false;
    bool m_ended = false;
    std::optional<config::RunConfiguration> m_inForce;          ///< of a run that has ended: last
    std::map<std::string, std::optional<std::string>> m_values; ///< shown before any edit
    std::map<std::string, std::string> m_sent;                  ///< edits of the Set under way, or refused
    config::LiveRequest m_request;                              ///< of that Set
    std::map<std::string, std::string> m_applied;               ///< edits that are in force, and not yet shown so
    QString m_restores;                                         ///< by Undo; empty: nothing to undo
    size_t m_configs = 0;                                       ///< rows of the catalogue's table
    size_t m_settledConfigs = 0;                                ///< with as many the card's figures were final
    bool m_hasEffect = false;
    bool m_showing = false;
    std::optional<control::RequestKind> m_waiting; ///< for the answer to a Set, an Undo, or the Checkpoint before a Set
};

} // namespace shardscope::ui
