// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/common/page.h"

#include "ui/common/notice.h"
#include "ui/common/recording_reader.h"

namespace shardscope::ui {

Page::Page(const Context &context, QWidget *parent)
    : QStackedWidget(parent)
    , m_context(context)
    , m_notice(new Notice(this))
{
    addWidget(m_notice);
    m_notice->setEmpty(tr("No run is open"),
                       tr("Choose a run in the list on the left, drop a run's folder here, or start a new run."));
    connect(m_notice, &Notice::cancelPressed, this, &Page::cancelled);
    RecordingReader &reader = context.reader;
    connect(&reader, &RecordingReader::opened, this, [this] { recordingOpened(); });
    connect(&reader, &RecordingReader::changed, this,
            [this](const RecordingChange &change) { recordingChanged(change); });
    connect(&reader, &RecordingReader::closed, this, [this] {
        recordingClosed();
        showEmpty(tr("No run is open"),
                  tr("Choose a run in the list on the left, drop a run's folder here, or start a new run."));
    });
    connect(&reader, &RecordingReader::waiting, this, [this] { onWaiting(); });
    connect(&reader, &RecordingReader::failed, this, [this](const QString &message) { onFailed(message); });
}

void Page::onWaiting()
{
    showEmpty(tr("Nothing is recorded yet"), tr("This fills as soon as the first rank has begun to record."));
}

void Page::onFailed(const QString &message)
{
    showError(reader().isOpen() ? tr("This recording can't be read any more") : tr("This recording can't be opened"),
              message);
}

bool Page::isSettled() const
{
    return face() != Face::Loading && !m_context.reader.isBusy();
}

Page::Face Page::face() const
{
    return m_content && currentWidget() == m_content ? Face::Content : m_notice->face();
}

QString Page::noticeText() const
{
    return m_notice->text();
}

void Page::setContent(QWidget *content)
{
    Q_ASSERT(!m_content);
    m_content = content;
    addWidget(content);
}

void Page::showContent()
{
    Q_ASSERT(m_content);
    setCurrentWidget(m_content);
}

void Page::showEmpty(const QString &headline, const QString &text, QAction *action)
{
    m_notice->setEmpty(headline, text, action);
    setCurrentWidget(m_notice);
}

void Page::showLoading(const QString &text, int progress)
{
    m_notice->setLoading(text, progress);
    setCurrentWidget(m_notice);
}

void Page::showError(const QString &headline, const QString &cause, QAction *action)
{
    m_notice->setError(headline, cause, action);
    setCurrentWidget(m_notice);
}

} // namespace shardscope::ui
