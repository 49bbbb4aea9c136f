// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/common/notice.h"

#include "ui/common/icons.h"

#include <QAction>
#include <QEvent>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>

namespace shardscope::ui {

Notice::Notice(QWidget *parent)
    : QWidget(parent)
    , m_icon(new QLabel(this))
    , m_headline(new QLabel(this))
    , m_text(new QLabel(this))
    , m_progress(new QProgressBar(this))
    , m_cancel(new QPushButton(tr("Cancel"), this))
    , m_do(new QPushButton(this))
{
    QFont large = font();
    large.setPointSizeF(large.pointSizeF() * 1.3);
    large.setBold(true);
    m_headline->setFont(large);
    m_text->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    for (QLabel *label : {m_headline, m_text}) {
        label->setWordWrap(true);
        label->setTextFormat(Qt::PlainText);
        label->setAlignment(Qt::AlignHCenter | Qt::AlignTop);
    }
    m_icon->setAlignment(Qt::AlignCenter);
    m_progress->setMaximumWidth(320);
    m_progress->setAccessibleName(tr("Loading"));

    // A column of a readable width. The labels fill it: a label that is aligned in its layout gets the height of its
    // size hint, not the one that its text needs at its width, and loses the last line.
    auto *column = new QWidget(this);
    column->setMaximumWidth(640);
    auto *across = new QHBoxLayout(this);
    across->setContentsMargins(24, 24, 24, 24);
    across->addStretch(1);
    across->addWidget(column, 1000);
    across->addStretch(1);
    auto *layout = new QVBoxLayout(column);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(8);
    layout->addStretch(2);
    layout->addWidget(m_icon, 0, Qt::AlignHCenter);
    layout->addWidget(m_headline);
    layout->addWidget(m_text);
    layout->addWidget(m_progress, 0, Qt::AlignHCenter);
    layout->addWidget(m_cancel, 0, Qt::AlignHCenter);
    layout->addWidget(m_do, 0, Qt::AlignHCenter);
    layout->addStretch(3);

    connect(m_cancel, &QPushButton::clicked, this, &Notice::cancelPressed);
    connect(m_do, &QPushButton::clicked, this, [this] {
        if (m_action)
            m_action->trigger();
    });
}

QString Notice::text() const
{
    return m_text->text().isEmpty() ? m_headline->text() : m_headline->text() + QStringLiteral(": ") + m_text->text();
}

void Notice::setEmpty(const QString &headline, const QString &text, QAction *action)
{
    show(Page::Face::Empty, headline, text, action);
}

void Notice::setLoading(const QString &text, int progress)
{
    show(Page::Face::Loading, text, {}, nullptr);
    m_progress->setRange(0, progress < 0 ? 0 : 100);
    m_progress->setValue(progress);
}

void Notice::setError(const QString &headline, const QString &cause, QAction *action)
{
    show(Page::Face::Error, headline, cause, action);
}

void Notice::show(Page::Face face, const QString &headline, const QString &text, QAction *action)
{
    m_face = face;
    m_headline->setText(headline);
    m_text->setText(text);
    m_text->setVisible(!text.isEmpty());
    m_progress->setVisible(face == Page::Face::Loading);
    m_cancel->setVisible(face == Page::Face::Loading);
    m_action = action;
    m_do->setVisible(action != nullptr);
    if (action) {
        m_do->setText(action->text());
        m_do->setToolTip(action->toolTip());
    }
    updateIcon();
}

void Notice::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        updateIcon();
}

void Notice::updateIcon()
{
    const QString name = m_face == Page::Face::Error     ? QStringLiteral("dialog-error")
                         : m_face == Page::Face::Loading ? QStringLiteral("chronometer")
                                                         : QStringLiteral("hint");
    m_icon->setPixmap(icon(name, palette()).pixmap(QSize(32, 32), devicePixelRatioF()));
}

} // namespace shardscope::ui
