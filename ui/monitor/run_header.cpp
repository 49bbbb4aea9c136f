// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/monitor/run_header.h"

#include "core/base/file.h"
#include "core/run/json_access.h"
#include "core/run/run_record.h"
#include "ui/common/background.h"
#include "ui/common/colors.h"
#include "ui/common/elided_label.h"
#include "ui/common/icons.h"
#include "ui/common/paths.h"
#include "ui/common/text.h"
#include "ui/monitor/run_commands.h"
#include "ui/monitor/run_state.h"

#include <QAction>
#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QToolButton>
#include <nlohmann/json.hpp>

namespace shardscope::ui {

static constexpr int kButtonGap = 4;
static constexpr int kMostButtons = 4;

RunHeader::RunHeader(RunCommands &commands, QWidget *parent)
    : QWidget(parent)
    , m_name(new ElidedLabel(this))
    , m_icon(new QLabel(this))
    , m_state(new ElidedLabel(this))
    , m_asked(new ElidedLabel(this))
{
    QFont large = font();
    large.setPointSizeF(large.pointSizeF() * 1.25);
    large.setBold(true);
    m_name->setFont(large);
    m_asked->setForegroundRole(QPalette::PlaceholderText);
    m_asked->setObjectName(QStringLiteral("asked"));
    for (QLabel *label : {m_name, m_state, m_asked})
        label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_asked->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred); // gives way to the state

    auto *upper = new QHBoxLayout;
    upper->setSpacing(kButtonGap);
    upper->addWidget(m_name, 1);
    auto *below = new QHBoxLayout; // beneath the buttons too: on a narrow page they would leave it too little
    below->setSpacing(6);
    below->addWidget(m_icon);
    below->addWidget(m_state);
    below->addWidget(m_asked, 1);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(4);
    layout->addLayout(upper);
    layout->addLayout(below);
    const auto addButton = [&](QAction *action) {
        auto *button = new QToolButton(this);
        button->setDefaultAction(action);
        button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
        upper->addWidget(button);
        return button;
    };
    for (QAction *action :
         {commands.pauseAction(), commands.checkpointAction(), commands.stopAction(), commands.killAction()})
        m_whileLive << addButton(action);
    m_resume = addButton(commands.resumeAction());
}

static int widthOf(const QList<QToolButton *> &buttons, Qt::ToolButtonStyle style)
{
    int width = 0;
    for (QToolButton *button : buttons) {
        button->setToolButtonStyle(style);
        width += button->isHidden() ? 0 : button->sizeHint().width() + kButtonGap;
    }
    return width;
}

QSize RunHeader::minimumSizeHint() const
{
    const int icons = kMostButtons * (m_resume->iconSize().width() + 12 + kButtonGap);
    return {icons + m_name->minimumSizeHint().width(), QWidget::minimumSizeHint().height()};
}

void RunHeader::fitButtons()
{
    const QList<QToolButton *> buttons = m_whileLive + QList{m_resume};
    const int nameWidth = 8 * m_name->fontMetrics().averageCharWidth();
    if (widthOf(buttons, Qt::ToolButtonTextBesideIcon) + nameWidth > width())
        widthOf(buttons, Qt::ToolButtonIconOnly);
}

void RunHeader::resizeEvent(QResizeEvent *event)
{
    QWidget::resizeEvent(event);
    fitButtons();
}

static QString textAt(const nlohmann::json &json, const char *section, const char *key)
{
    const auto group = json.find(section);
    if (group == json.end() || !group->is_object())
        return {};
    const auto value = group->find(key);
    if (value == group->end() || value->is_null())
        return {};
    return QString::fromStdString(value->is_string() ? value->get<std::string>() : value->dump());
}

QString askedText(const nlohmann::json &resolved)
{
    QStringList parts;
    const auto add = [&parts](const QString &text) {
        if (!text.isEmpty())
            parts << text;
    };
    add(textAt(resolved, "model", "preset"));
    const QString ranks = textAt(resolved, "parallel", "ranks");
    if (!ranks.isEmpty())
        parts << (ranks == QLatin1String("1") ? RunHeader::tr("1 rank") : RunHeader::tr("%1 ranks").arg(ranks));
    add(textAt(resolved, "parallel", "strategy"));
    add(textAt(resolved, "precision", "compute"));
    add(textAt(resolved, "parallel", "device"));
    const QString batch = textAt(resolved, "train", "micro_batch");
    const QString length = textAt(resolved, "train", "sequence_length");
    if (!batch.isEmpty() && !length.isEmpty())
        parts << RunHeader::tr("%1 × %2 tokens a rank").arg(batch, length);
    return parts.join(QStringLiteral(" · "));
}

void RunHeader::setRun(const run::RunSummary &run)
{
    m_name->setText(QString::fromStdString(run.shownName()));
    m_name->setToolTip(fromPath(run.folder.root()));
    QString state = stateText(run.status);
    if (run.status.attempt > 1)
        state = tr("%1, attempt %2").arg(state).arg(run.status.attempt);
    m_state->setText(run.problem.empty() ? state : QString::fromStdString(run.problem));
    m_status = run.status;
    const bool ended = !m_status.live();
    for (QToolButton *button : std::as_const(m_whileLive))
        button->setVisible(!ended);
    m_resume->setVisible(ended);
    fitButtons();
    showState();
    const QString folder = fromPath(run.folder.root());
    if (folder != m_folder || run.status.attempt != m_attempt) {
        m_folder = folder;
        m_attempt = run.status.attempt;
        m_asked->clear();
        m_inForceJson.clear();
        readConfiguration(run.folder);
    }
}

/// Of that attempt: one that goes on may have other ranks and another strategy than run.json tells of the first.
static Result<nlohmann::json> configurationOf(const run::RunFolder &folder, int attempt)
{
    if (attempt <= 1)
        return run::readRunRecord(folder).map([](const run::RunRecord &record) { return record.resolved; });
    const auto path = folder.configFile(attempt);
    return readTextFile(path).and_then(
        [&path](const std::string &text) { return run::parseObject(text, path.string()); });
}

void RunHeader::readConfiguration(const run::RunFolder &folder)
{
    inBackground(
        this, [folder, attempt = m_attempt] { return configurationOf(folder, attempt); },
        [this, path = m_folder, attempt = m_attempt](const Result<nlohmann::json> &resolved) {
            // Where it can't be read the page still works; the Timeline's error says more.
            if (path == m_folder && attempt == m_attempt && m_inForceJson.empty() && resolved)
                m_asked->setText(QStringLiteral("· ") + askedText(*resolved));
        });
}

void RunHeader::setInForce(int64_t attempt, const std::string &configurationJson)
{
    if (attempt != m_attempt || configurationJson == m_inForceJson)
        return;
    const auto configuration = nlohmann::json::parse(configurationJson, nullptr, false);
    if (!configuration.is_object())
        return; // of another version: what it began with stays
    m_inForceJson = configurationJson;
    m_asked->setText(QStringLiteral("· ") + askedText(configuration));
}

void RunHeader::showState()
{
    const QColor color = Colors::of(palette()).state(m_status.state);
    m_icon->setPixmap(tintedIcon(stateIcon(m_status), color, 16, devicePixelRatioF()));
}

void RunHeader::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        showState();
}

} // namespace shardscope::ui
