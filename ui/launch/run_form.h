// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/config/check.h"
#include "core/config/registry.h"

#include <QWidget>
#include <vector>

class QLabel;
class QPlainTextEdit;
class QToolButton;

namespace shardscope::ui {

class Field;

/// The form of a new run, made from the registry of keys: what most people set first, everything else below a fold. Its
/// values are read and judged by the functions that read --set, so that a mistake has the same words here.
class RunForm : public QWidget
{
    Q_OBJECT
public:
    RunForm(std::vector<config::KnownModel> models, QWidget *parent = nullptr);

    /// All fields read into a configuration. Fields that can't be read are in problems, and keep their defaults.
    config::RunConfiguration configuration(std::vector<config::Problem> &problems) const;
    void setConfiguration(const config::RunConfiguration &configuration);
    /// Each message under its field. A problem of a key below the fold opens it.
    void showProblems(const std::vector<config::Problem> &problems);
    Field *field(std::string_view path) const;

Q_SIGNALS:
    void edited();

private:
    QWidget *buildGroup(const QString &title, const std::vector<std::string_view> &paths);
    QWidget *buildFold();
    Field *addField(const config::Key &key, QWidget *parent);
    QWidget *buildRules();

    std::vector<config::KnownModel> m_models;
    std::vector<Field *> m_fields;
    QWidget *m_fold = nullptr;
    QToolButton *m_foldButton = nullptr;
    QPlainTextEdit *m_rules = nullptr; ///< a [[unit]] a line, as --unit has it
    QLabel *m_rulesProblem = nullptr;
};

} // namespace shardscope::ui
