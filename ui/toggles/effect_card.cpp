// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/toggles/effect_card.h"

#include "core/config/live_change.h"
#include "ui/common/text.h"

#include <QGridLayout>
#include <QLabel>
#include <QToolButton>
#include <cmath>

namespace shardscope::ui {

using analysis::Effect;
using analysis::Side;

QString changeText(const std::string &changedJson)
{
    QStringList lines;
    for (const config::Difference &each : config::differencesIn(changedJson))
        lines << QString::fromStdString(config::textOf(each));
    return lines.join(u'\n');
}

static QString figureText(double value, bool isTime)
{
    const auto whole = static_cast<int64_t>(std::llround(value));
    return isTime ? durationText(whole) : bytesText(whole);
}

static QString sideText(const std::optional<Side> &side, bool isTime)
{
    return side ? figureText(side->median, isTime) : QStringLiteral("—");
}

/// Half of what lies between the quartiles.
static QString aroundText(const std::optional<Side> &side, bool isTime)
{
    return side ? QStringLiteral("± ") + figureText((side->upper - side->lower) / 2, isTime) : QString();
}

static QString spreadText(const std::optional<Side> &side, bool isTime)
{
    return side ? EffectCard::tr("%1 (quartiles %2 … %3, %4 steps)")
                      .arg(figureText(side->median, isTime), figureText(side->lower, isTime),
                           figureText(side->upper, isTime))
                      .arg(side->steps)
                : EffectCard::tr("not measured, or fewer than %1 steps").arg(analysis::kStepsNeeded);
}

static QString verdictOf(const Effect &effect)
{
    if (!effect.p)
        return {};
    if (!effect.significant())
        return EffectCard::tr("not significant");
    if (effect.before->median <= 0)
        return EffectCard::tr("more");
    constexpr double kShown = 0.1; // percent
    const double change = (effect.after->median / effect.before->median - 1) * 100;
    if (std::abs(change) < kShown / 2)
        return EffectCard::tr("less than %1 %").arg(kShown);
    return QString::asprintf("%+.1f %%", change);
}

EffectCard::EffectCard(QWidget *parent)
    : QFrame(parent)
    , m_title(new QLabel(this))
    , m_waiting(new QLabel(this))
    , m_steps(new QToolButton(this))
{
    setFrameShape(QFrame::StyledPanel);
    setAutoFillBackground(true);
    setBackgroundRole(QPalette::Base);
    setAccessibleName(tr("What the last change did"));
    m_title->setObjectName(QStringLiteral("change"));
    auto *grid = new QGridLayout(this);
    grid->setContentsMargins(12, 8, 12, 8);
    grid->setHorizontalSpacing(8);
    grid->setVerticalSpacing(4);
    m_title->setWordWrap(true);
    m_waiting->setWordWrap(true);
    m_waiting->setForegroundRole(QPalette::PlaceholderText);
    grid->addWidget(m_title, 0, 0, 1, 3);
    const QString names[] = {tr("Step time"), tr("Peak memory"), tr("Exposed communication")};
    const QString figures[] = {QStringLiteral("step"), QStringLiteral("peak"), QStringLiteral("exposed")};
    for (int i = 0; i < 3; ++i) {
        Row &row = m_rows[static_cast<size_t>(i)];
        row = {new QLabel(names[i], this), new QLabel(this), new QLabel(this),
               new QLabel(this),           new QLabel(this), new QLabel(this)};
        row.name->setWordWrap(true);
        row.before->setObjectName(figures[i] + QStringLiteral(".before"));
        row.after->setObjectName(figures[i] + QStringLiteral(".after"));
        row.spreadBefore->setObjectName(figures[i] + QStringLiteral(".spreadBefore"));
        row.spreadAfter->setObjectName(figures[i] + QStringLiteral(".spreadAfter"));
        for (QLabel *label : {row.before, row.after, row.spreadBefore, row.spreadAfter, row.verdict}) {
            label->setTextFormat(Qt::PlainText);
            label->setTextInteractionFlags(Qt::TextSelectableByMouse);
            label->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
        }
        for (QLabel *label : {row.spreadBefore, row.spreadAfter, row.verdict})
            label->setForegroundRole(QPalette::PlaceholderText);
        // Three lines each: the dock is narrow.
        const int line = 3 * i + 1;
        grid->addWidget(row.name, line, 0, 3, 1, Qt::AlignTop);
        grid->addWidget(row.before, line, 1);
        grid->addWidget(row.after, line, 2);
        grid->addWidget(row.spreadBefore, line + 1, 1);
        grid->addWidget(row.spreadAfter, line + 1, 2);
        grid->addWidget(row.verdict, line + 2, 1, 1, 2);
    }
    grid->addWidget(m_waiting, 10, 0, 1, 3);
    m_steps->setText(tr("&Steps…"));
    m_steps->setToolTip(tr("Show the query that gives each step's figures"));
    m_steps->setAutoRaise(true);
    grid->addWidget(m_steps, 11, 0, 1, 3, Qt::AlignLeft);
    grid->setColumnStretch(0, 1);
    m_title->setTextFormat(Qt::PlainText);
    connect(m_steps, &QToolButton::clicked, this, &EffectCard::tellSteps);
    hide();
}

void EffectCard::showRow(Row &row, const Effect &effect, bool isTime)
{
    row.before->setText(sideText(effect.before, isTime));
    row.after->setText(QStringLiteral("→ ") + sideText(effect.after, isTime));
    row.spreadBefore->setText(aroundText(effect.before, isTime));
    row.spreadAfter->setText(aroundText(effect.after, isTime));
    const bool measured = effect.before || effect.after;
    row.spreadBefore->setVisible(measured);
    row.spreadAfter->setVisible(measured);
    row.verdict->setText(verdictOf(effect));
    row.verdict->setVisible(!row.verdict->text().isEmpty());
    QString tip = tr("Before: %1\nAfter: %2").arg(spreadText(effect.before, isTime), spreadText(effect.after, isTime));
    if (effect.p)
        tip += tr("\nMann–Whitney U, two-sided: p = %1. Below %2 the difference counts.")
                   .arg(*effect.p, 0, 'g', 2)
                   .arg(analysis::kSignificance);
    if (measured)
        tip += tr("\nThe figure behind ± is half of what lies between the quartiles.");
    tip += tr("\nThe first %1 steps after a change are left out.").arg(analysis::kSettlingSteps);
    for (QLabel *label : {row.name, row.before, row.after, row.spreadBefore, row.spreadAfter, row.verdict})
        label->setToolTip(tip);
    row.after->setAccessibleDescription(tip);
}

void EffectCard::setEffect(const std::optional<analysis::ChangeEffect> &effect)
{
    m_effect = effect;
    setVisible(effect.has_value());
    if (!effect)
        return;
    const QString what = changeText(effect->changedJson);
    m_title->setText(effect->origin == "undo" ? tr("Undone from step %1:\n%2").arg(effect->firstStep).arg(what)
                                              : tr("From step %1:\n%2").arg(effect->firstStep).arg(what));
    showRow(m_rows[0], effect->stepNs, true);
    showRow(m_rows[1], effect->peakBytes, false);
    showRow(m_rows[2], effect->exposedNs, true);
    const bool waits = effect->stepsAfter < analysis::kStepsNeeded;
    m_waiting->setText(waits ? tr("%1 of %2 steps after the first %3.")
                                   .arg(effect->stepsAfter)
                                   .arg(analysis::kStepsNeeded)
                                   .arg(analysis::kSettlingSteps)
                             : QString());
    m_waiting->setVisible(waits);
}

void EffectCard::tellSteps()
{
    if (!m_effect)
        return;
    InspectorContent content;
    content.title = tr("The change from step %1").arg(m_effect->firstStep);
    content.facts = {{tr("Attempt"), QString::number(m_effect->attempt)},
                     {tr("What"), changeText(m_effect->changedJson)},
                     {tr("Step time before"), spreadText(m_effect->stepNs.before, true)},
                     {tr("Step time after"), spreadText(m_effect->stepNs.after, true)}};
    content.sql = QString::fromStdString(m_effect->sql);
    Q_EMIT inspect(content);
}

} // namespace shardscope::ui
