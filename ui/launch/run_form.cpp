// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/launch/run_form.h"

#include "core/config/unit_rules.h"
#include "ui/common/text.h"
#include "ui/launch/field.h"

#include <QGridLayout>
#include <QGroupBox>
#include <QLabel>
#include <QPlainTextEdit>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

namespace shardscope::ui {

RunForm::RunForm(std::vector<config::KnownModel> models, QWidget *parent)
    : QWidget(parent)
    , m_models(std::move(models))
{
    auto *columns = new QGridLayout;
    columns->setSpacing(8);
    columns->addWidget(buildGroup(tr("Model and data"), {"model.preset", "data.path", "train.sequence_length"}), 0, 0);
    columns->addWidget(buildGroup(tr("Ranks"), {"parallel.ranks", "parallel.device", "parallel.share_device",
                                                "parallel.strategy", "precision.compute"}),
                       0, 1, 2, 1);
    columns->addWidget(buildGroup(tr("Training"), {"train.steps", "train.micro_batch", "train.accumulation",
                                                   "optimizer.learning_rate"}),
                       1, 0);
    columns->addWidget(buildGroup(tr("Run"), {"run.name", "run.directory"}), 2, 0, 1, 2);
    columns->setColumnStretch(0, 1);
    columns->setColumnStretch(1, 1);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(columns);
    layout->addWidget(buildFold());
    layout->addStretch(1);
}

Field *RunForm::addField(const config::Key &key, QWidget *parent)
{
    QStringList choices;
    if (key.path == "model.preset") {
        for (const config::KnownModel &model : m_models)
            choices << QString::fromStdString(model.name);
    }
    auto *made = new Field(key, choices, parent);
    const QString usual = QString::fromStdString(config::textOf(config::defaultOf(key)));
    if (key.automatic)
        made->setPlaceholder(tr("derived"));
    else
        made->setText(usual);
    if (key.path == "data.path" || key.path == "model.path" || key.path == "run.directory")
        made->addBrowse(key.path == "data.path");
    connect(made, &Field::edited, this, &RunForm::edited);
    m_fields.push_back(made);
    return made;
}

QWidget *RunForm::buildGroup(const QString &title, const std::vector<std::string_view> &paths)
{
    auto *group = new QGroupBox(title, this);
    auto *grid = new QGridLayout(group);
    grid->setHorizontalSpacing(8);
    grid->setVerticalSpacing(4);
    grid->setColumnStretch(1, 1);
    for (const std::string_view path : paths) {
        const auto key = config::findKey(path);
        Q_ASSERT_X(key.has_value(), "RunForm", "the form names a key that the registry has not");
        addField(**key, group)->addTo(grid);
    }
    grid->setRowStretch(grid->rowCount(), 1);
    return group;
}

QWidget *RunForm::buildFold()
{
    auto *box = new QWidget(this);
    m_foldButton = new QToolButton(box);
    m_foldButton->setText(tr("&All other settings"));
    m_foldButton->setCheckable(true);
    m_foldButton->setAutoRaise(true);
    m_foldButton->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    m_foldButton->setArrowType(Qt::RightArrow);
    m_fold = new QWidget(box);
    auto *grid = new QGridLayout(m_fold);
    grid->setHorizontalSpacing(8);
    grid->setVerticalSpacing(4);
    grid->setColumnStretch(1, 1);
    for (const config::Key &key : config::keys()) {
        const bool above = std::any_of(m_fields.begin(), m_fields.end(),
                                       [&key](const Field *one) { return one->key().path == key.path; });
        if (!above)
            addField(key, m_fold)->addTo(grid);
    }
    grid->addWidget(buildRules(), grid->rowCount(), 0, 1, 3);
    m_fold->hide();
    connect(m_foldButton, &QToolButton::toggled, this, [this](bool open) {
        m_fold->setVisible(open);
        m_foldButton->setArrowType(open ? Qt::DownArrow : Qt::RightArrow);
    });
    auto *layout = new QVBoxLayout(box);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_foldButton);
    layout->addWidget(m_fold);
    return box;
}

QWidget *RunForm::buildRules()
{
    auto *box = new QWidget(m_fold);
    m_rules = new QPlainTextEdit(box);
    m_rules->setPlaceholderText(QStringLiteral("*:kind=norm,strategy=grad_op\nembedding.*:strategy=none"));
    m_rules->setAccessibleName(tr("Rules for units"));
    m_rules->setTabChangesFocus(true);
    m_rules->setMaximumHeight(m_rules->fontMetrics().height() * 5);
    QString help = tr("A rule a line, PATTERN:KEY=VALUE or several KEY=VALUE with commas between; in order, the last "
                      "match wins.");
    for (const config::RuleKey &key : config::ruleKeys())
        help += u'\n' + QString::fromStdString(config::describe(key));
    m_rules->setToolTip(help);
    auto *label = new QLabel(tr("R&ules for units:"), box);
    label->setBuddy(m_rules);
    label->setToolTip(help);
    m_rulesProblem = new QLabel(box);
    m_rulesProblem->setWordWrap(true);
    m_rulesProblem->setTextFormat(Qt::PlainText);
    m_rulesProblem->setForegroundRole(QPalette::BrightText); // the theme's colour of errors
    m_rulesProblem->hide();
    connect(m_rules, &QPlainTextEdit::textChanged, this, &RunForm::edited);
    auto *layout = new QVBoxLayout(box);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(4);
    layout->addWidget(label);
    layout->addWidget(m_rules);
    layout->addWidget(m_rulesProblem);
    return box;
}

Field *RunForm::field(std::string_view path) const
{
    const auto found =
        std::find_if(m_fields.begin(), m_fields.end(), [path](const Field *one) { return one->key().path == path; });
    return found == m_fields.end() ? nullptr : *found;
}

config::RunConfiguration RunForm::configuration(std::vector<config::Problem> &problems) const
{
    config::RunConfiguration configuration;
    for (const Field *one : m_fields) {
        const config::Key &key = one->key();
        const QString text = one->text();
        if (text.isEmpty() && key.automatic)
            continue; // to be derived, which is the default
        if (const Result<> set = config::setKey(configuration, key.path, text.toStdString()); !set)
            problems.push_back({std::string(key.path), set.error().text});
    }
    for (const QString &line : m_rules->toPlainText().split(u'\n', Qt::SkipEmptyParts)) {
        if (line.trimmed().isEmpty())
            continue;
        if (auto rule = config::ruleFromText(line.trimmed().toStdString()))
            configuration.units.push_back(std::move(*rule));
        else
            problems.push_back({"unit", rule.error().text});
    }
    return configuration;
}

void RunForm::setConfiguration(const config::RunConfiguration &configuration)
{
    blockSignals(true); // one edited() for all
    for (Field *one : m_fields) {
        const QString text = QString::fromStdString(config::textOf(config::valueOf(configuration, one->key())));
        one->setText(one->key().automatic && text == QLatin1String("auto") ? QString() : text);
    }
    QStringList rules;
    for (const config::UnitRule &rule : configuration.units)
        rules << QString::fromStdString(config::textOf(rule));
    m_rules->setPlainText(rules.join(u'\n'));
    blockSignals(false);
    Q_EMIT edited();
}

void RunForm::showProblems(const std::vector<config::Problem> &problems)
{
    for (Field *one : m_fields) {
        const auto found = std::find_if(problems.begin(), problems.end(),
                                        [one](const auto &problem) { return problem.key == one->key().path; });
        const bool bad = found != problems.end();
        one->setProblem(bad ? QString::fromStdString(found->message) : QString());
        if (bad && one->editor()->parentWidget() == m_fold)
            m_foldButton->setChecked(true);
    }
    QStringList ofRules;
    for (const config::Problem &problem : problems) {
        if (problem.key == "unit")
            ofRules << QString::fromStdString(problem.message);
    }
    m_rulesProblem->setText(ofRules.join(u'\n'));
    m_rulesProblem->setVisible(!ofRules.isEmpty());
    m_rules->setAccessibleDescription(m_rulesProblem->text());
    if (!ofRules.isEmpty())
        m_foldButton->setChecked(true);
}

} // namespace shardscope::ui
